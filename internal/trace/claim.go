package trace

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/godwit-hq/godwit/spec/requirements"
)

const (
	claimSuffix = ".claims"
	sdkSuffix   = ".json" // written by the test suites of other languages
)

// Claim says that a passed test shows a row.
type Claim struct {
	ID      string // EDS-STA-503
	Package string // internal/sender
	Test    string // TestClassify/503
}

// String is the claim as a line of a claims file. Ids and names of packages and tests hold no tab.
func (c Claim) String() string { return c.ID + "\t" + c.Package + "\t" + c.Test }

// processFile is the name of this process's claims file. The random part keeps a reused process id from writing to an older
// file.
var processFile = sync.OnceValue(func() string {
	return fmt.Sprintf("%d-%s%s", os.Getpid(), rand.Text(), claimSuffix)
})

// ReadClaims reads the claims of one run in dir.
func ReadClaims(dir string) ([]Claim, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	var claims []Claim
	for _, e := range entries {
		read := readFile
		switch filepath.Ext(e.Name()) {
		case claimSuffix:
		case sdkSuffix:
			read = readSDK
		default:
			continue
		}
		more, err := read(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		claims = append(claims, more...)
	}
	return claims, nil
}

func readFile(name string) ([]Claim, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	defer f.Close()
	var claims []Claim
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		part := strings.Split(lines.Text(), "\t")
		if len(part) != 3 {
			return nil, fmt.Errorf("read claims: malformed line %q in %s", lines.Text(), name)
		}
		claims = append(claims, Claim{ID: part[0], Package: part[1], Test: part[2]})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	return claims, nil
}

// readSDK reads the claims of a suite in another language, <language>.json: rows, each with the tests that show it.
func readSDK(name string) ([]Claim, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	var run struct {
		Covered map[string][]string `json:"covered"`
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return nil, fmt.Errorf("read claims of %s: %w", name, err)
	}
	tables, err := requirements.Embedded()
	if err != nil {
		return nil, fmt.Errorf("load requirements: %w", err)
	}
	folder := "sdk/" + strings.TrimSuffix(filepath.Base(name), sdkSuffix)
	var claims []Claim
	for id, tests := range run.Covered {
		if !tables.Known(id) {
			return nil, fmt.Errorf("read claims of %s: no row %q in spec/requirements", name, id)
		}
		for _, test := range tests {
			claims = append(claims, Claim{ID: id, Package: folder, Test: strings.Join(strings.Fields(test), " ")})
		}
	}
	return claims, nil
}
