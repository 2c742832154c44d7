package ids

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// away is a store that cannot be read.
type away struct{ builtincommand.Store }

func (away) CountDeadLetters(context.Context, store.DeadLetterFilter, int) ([]store.DeadLetterCount, error) {
	return nil, errors.New("away")
}

// The answer that shows a confirmation token is given even if the command's changes cannot be counted.
func TestAnswerWithoutAPreview(t *testing.T) {
	s := &server{cfg: Config{
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Preview: builtincommand.NewPreviewer(builtincommand.Config{Store: away{}}),
	}}
	who := command.Caller{Tenant: godwit.NewTenantID(time.Unix(0, 0)).String()}
	e := &command.Envelope{Intent: command.Intent{Entity: "dead_letters", Action: "purge"}, Args: []byte(`{"all":true}`)}
	a := &command.Answer{Status: command.InProgress, Substatus: command.AwaitingConfirmation, Token: "cft_1"}
	if got := s.affects(t.Context(), who, e, a); got != nil {
		t.Errorf("%+v", got)
	}
}
