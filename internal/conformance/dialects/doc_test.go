// Package dialects shows what concerns several dialects at once: one event in three forms, receivers that others would
// write, and the pages that introduce each dialect. What a single document asks for stands in the packages beside it.
package dialects

import (
	"os"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }
