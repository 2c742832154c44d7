package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
)

// A database of a later release opens if every later migration permits programs of this schema, and only then.
func TestNewerSchema(t *testing.T) {
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	known := len(list)
	for _, c := range []struct {
		name   string
		later  map[int]string // version: the value of beside
		usable bool
	}{
		{"one migration permits us", map[int]string{known + 1: fmt.Sprint(known)}, true},
		{"all permit us", map[int]string{known + 1: fmt.Sprint(known - 1), known + 2: fmt.Sprint(known)}, true},
		{"it needs its own programs", map[int]string{known + 1: fmt.Sprint(known + 1)}, false},
		{"the first permits us, the second does not", map[int]string{known + 1: fmt.Sprint(known), known + 2: fmt.Sprint(known + 1)}, false},
		{"the second permits us, the first does not", map[int]string{known + 1: fmt.Sprint(known + 1), known + 2: fmt.Sprint(known)}, false},
		{"it does not say", map[int]string{known + 1: "NULL"}, false},
		{"a version is missing", map[int]string{known + 2: fmt.Sprint(known)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := newDatabase(t, Options{Now: suiteTime})
			openURL(t, url).Close()
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			highest := 0
			for version, beside := range c.later {
				highest = max(highest, version)
				_, err := conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO schema_migrations (version, name, beside) VALUES (%d, 'later', %s)`, version, beside))
				if err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(t.Context(), url, Options{Now: suiteTime})
			switch {
			case c.usable && err != nil:
				t.Errorf("opening gave %v", err)
			case !c.usable && (!errors.Is(err, store.ErrNewerSchema) || !strings.Contains(err.Error(), fmt.Sprintf("version %d ", highest))):
				t.Errorf("opening gave %v", err)
			}
			if err == nil {
				if d, err := s.Describe(t.Context()); err != nil || d.SchemaVersion != highest || d.ProgramSchema != known {
					t.Errorf("the store describes itself as %+v, %v", d, err)
				}
				s.Close()
			}
			if schema, err := ReadSchema(t.Context(), url); err != nil || schema.Usable != c.usable || schema.Version != highest {
				t.Errorf("the schema is %+v, %v", schema, err)
			}
		})
	}
}

// A database of a release that did not record what may run beside it is brought up to date, and then refused as before.
func TestSchemaOfAnEarlierRelease(t *testing.T) {
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	url := postgrestest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := apply(t.Context(), conn, list[:firstBeside-1]); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `ALTER TABLE schema_migrations DROP COLUMN beside`); err != nil {
		t.Fatal(err)
	}
	if err := apply(t.Context(), conn, list[:firstBeside-2]); !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("an older program got %v", err)
	}
	if err := apply(t.Context(), conn, list); err != nil {
		t.Errorf("the upgrade gave %v", err)
	}
}

// breaking matches statements after which a program of the schema before fails or writes wrong rows.
var breaking = regexp.MustCompile(`(?i)\b(DROP\s+(TABLE|COLUMN|VIEW|FUNCTION)|RENAME\s+(TO|COLUMN)|ALTER\s+(COLUMN\s+)?\w+\s+(SET\s+DATA\s+)?TYPE|SET\s+NOT\s+NULL)\b`)

// A migration that lets older programs run beside it only adds.
func TestMigrationsAreAdditive(t *testing.T) {
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list[min(firstBeside-1, len(list)):] {
		if found := breaking.FindString(m.sql); found != "" && m.beside < m.version {
			t.Errorf("migration %s has %q and says that programs of schema %d may run beside it; add instead, or name schema %d",
				m.name, found, m.beside, m.version)
		}
	}
	for sql, breaks := range map[string]bool{
		"ALTER TABLE x DROP COLUMN y": true, "ALTER TABLE x ALTER y TYPE int8": true, "ALTER TABLE x ALTER COLUMN y SET NOT NULL": true,
		"alter table x rename to z": true, "DROP TABLE x": true, "ALTER TABLE x ADD COLUMN y int NOT NULL DEFAULT 0": false,
		"CREATE TABLE x (type text NOT NULL)": false, "DROP INDEX x": false,
	} {
		if breaking.MatchString(sql) != breaks {
			t.Errorf("%q counts as breaking: %v", sql, !breaks)
		}
	}
}

func TestEveryMigrationSaysWhatMayRunBesideIt(t *testing.T) {
	for sql, want := range map[string]int{
		"-- Programs of schema 8 and later may run beside this one.\nCREATE TABLE x ();":  8,
		"-- Programs of schema 9 and later may run beside this one.\nDROP TABLE x;":       9,
		"-- Programs of schema 10 and later may run beside this one.\nCREATE TABLE x ();": 0,
		"-- Programs of schema 7 and later may run beside this one.\nCREATE TABLE x ();":  0,
		"CREATE TABLE x ();": 0,
		"\n-- Programs of schema 8 and later may run beside this one.\n": 0,
	} {
		got, err := oldestBeside(migration{version: 9, name: "0009_x", sql: sql})
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", sql, got, err)
		}
	}
}
