// Package difftest runs differential tests: two implementations get the same random input, and must do the same with it.
//
// The input of an execution is a pure function of its number, so a run can be stopped, resumed and repeated. Without settings
// Run does a few thousand executions, as a part of the test suite. These variables, which scripts/fuzz-differential sets, ask
// for a long run:
//
//	GODWIT_FUZZ_EXECUTIONS  run up to this number of executions
//	GODWIT_FUZZ_STATE       file that holds how many are done; a later run continues there
//
// A native fuzz target over the same comparison finds inputs that the generator does not think of; Run is for their number.
package difftest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// usual is the number of executions in an ordinary test run.
	usual = 5_000
	// reportEvery is how many executions lie between two reports of a long run.
	reportEvery = 100_000
)

// Run calls try with a source of random numbers for each execution, until one returns an error.
func Run(t *testing.T, try func(*rand.Rand) error) {
	t.Helper()
	from, to := uint64(0), uint64(usual)
	if text := os.Getenv("GODWIT_FUZZ_EXECUTIONS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("GODWIT_FUZZ_EXECUTIONS: %v", err)
		}
		to = n
	}
	state := os.Getenv("GODWIT_FUZZ_STATE")
	if state != "" {
		from = done(t, state)
	}
	begun, first := time.Now(), from
	source := &rand.PCG{}
	random := rand.New(source)
	for i := from; i < to; i++ {
		source.Seed(1, i)
		if err := try(random); err != nil {
			t.Fatalf("execution %d: %v", i, err)
		}
		if state != "" && ((i+1)%reportEvery == 0 || i+1 == to) {
			report(t, state, i+1, float64(i+1-first)/time.Since(begun).Seconds())
		}
	}
}

// done reads how many executions earlier runs have done.
func done(t *testing.T, state string) uint64 {
	text, err := os.ReadFile(state)
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", state, err)
	}
	return n
}

func report(t *testing.T, state string, n uint64, rate float64) {
	if err := os.WriteFile(state, fmt.Appendf(nil, "%d\n", n), 0o644); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s %s: %d executions, %.0f/s\n", time.Now().UTC().Format(time.RFC3339), t.Name(), n, rate)
}

// Mutate returns text with up to three random changes: bytes and tokens inserted, replaced, removed and repeated.
func Mutate(r *rand.Rand, text []byte, tokens []string) []byte {
	for range 1 + r.IntN(3) {
		at := r.IntN(len(text) + 1)
		end := min(len(text), at+r.IntN(8))
		piece := text[at:end]
		switch r.IntN(6) {
		case 0:
			piece = nil
		case 1:
			piece = append([]byte(Pick(r, tokens)), piece...)
		case 2:
			piece = []byte(Pick(r, tokens))
		case 3:
			piece = append(piece[:len(piece):len(piece)], piece...)
		case 4:
			piece = append([]byte{byte(r.Uint32())}, piece...)
		case 5:
			other := r.IntN(len(text) + 1)
			piece = append(piece[:len(piece):len(piece)], text[other:min(len(text), other+r.IntN(40))]...)
		}
		changed := make([]byte, 0, len(text)+len(piece))
		changed = append(append(append(changed, text[:at]...), piece...), text[end:]...)
		text = changed
	}
	return text
}

// Pick returns one of the choices.
func Pick[T any](r *rand.Rand, choices []T) T { return choices[r.IntN(len(choices))] }
