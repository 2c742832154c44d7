package management

import (
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// withCode stores an object that has a public code, and draws another code if it is taken.
func withCode(code *string, what string, insert func() error) error {
	const tries = 5
	for try := 1; ; try++ {
		*code = profile.NewCode()
		err := insert()
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) || try == tries {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
