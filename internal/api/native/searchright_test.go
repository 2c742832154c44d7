package native

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/problem"
)

// A search writes no line once its client may no longer read, and ends.
func TestSearchAsksBeforeEachLine(t *testing.T) {
	may, w := true, httptest.NewRecorder()
	lines := &searchLines{reader: newReader(w, time.Minute), again: func() error {
		if may {
			return nil
		}
		return problem.Unauthorized
	}}
	if err := lines.Reached(1, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	written := w.Body.Len()
	may = false
	if err := lines.Reached(2, time.Unix(0, 0)); err == nil || w.Body.Len() != written || !lines.refused || lines.gone {
		t.Errorf("%v, %d bytes more", err, w.Body.Len()-written)
	}
}
