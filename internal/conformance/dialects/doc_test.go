// Package dialects tests what concerns several dialects at once: one event in three forms, receivers with independent
// implementations, and the pages that introduce each dialect. The packages beside it test the single documents.
package dialects

import (
	"os"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }
