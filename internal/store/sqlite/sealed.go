package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A reference is the text form of the id. Its prefix identifies the table, and the tables are in the order of the prefixes.
var sealedTables = []struct{ table, prefix string }{{"secrets", "sec_"}, {"sources", "src_"}, {"endpoints", "sub_"}}

// sealedRows lists and replaces the values that are encrypted at rest.
type sealedRows struct{ *database }

// SealedRows pages through the encrypted values.
func (s *sealedRows) SealedRows(ctx context.Context, after string, limit int) ([]store.SealedRow, error) {
	var out []store.SealedRow
	err := s.read(ctx, "list sealed values", func(c *conn) error {
		for _, t := range sealedTables {
			var from [16]byte
			if strings.HasPrefix(after, t.prefix) {
				if _, id, ok := sealedAt(after); ok {
					from = id
				}
			} else if after > t.prefix {
				continue
			}
			query := "SELECT id, sealed FROM " + t.table + " WHERE id > ? AND length(sealed) > 0 ORDER BY id LIMIT ?"
			err := c.each(ctx, query, []driver.Value{from[:], int64(max(limit-len(out), 0))}, func(r *rows) error {
				ref := godwit.SecretID(r.id(0)).String()
				switch t.table {
				case "endpoints":
					ref = godwit.EndpointID(r.id(0)).String()
				case "sources":
					ref = godwit.SourceID(r.id(0)).String()
				}
				out = append(out, store.SealedRow{Ref: ref, Sealed: r.blob(1), Bound: ref})
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// sealedAt finds the table and id of a reference.
func sealedAt(ref string) (table string, id [16]byte, ok bool) {
	var parseSecret func(string) (godwit.SecretID, error) = godwit.ParseID
	var parseEndpoint func(string) (godwit.EndpointID, error) = godwit.ParseID
	if id, err := parseSecret(ref); err == nil {
		return "secrets", id, true
	}
	if id, err := parseEndpoint(ref); err == nil {
		return "endpoints", id, true
	}
	if id, err := godwit.ParseSourceID(ref); err == nil {
		return "sources", id, true
	}
	return "", id, false
}

// ReplaceSealed replaces a value if it has not changed since it was read.
func (s *sealedRows) ReplaceSealed(ctx context.Context, row store.SealedRow, sealed []byte) error {
	return s.write(ctx, "replace sealed value", func(c *conn) error {
		table, id, ok := sealedAt(row.Ref)
		if !ok {
			return store.ErrNotFound
		}
		query := "UPDATE secrets SET sealed = ? WHERE id = ? AND sealed = ?"
		if table != "secrets" {
			query = "UPDATE " + table + " SET sealed = ?, version = version + 1 WHERE id = ? AND sealed = ?"
		}
		n, err := c.exec(query, sealed, id[:], row.Sealed)
		if err != nil || n == 1 {
			return err
		}
		err = c.first(ctx, "SELECT 1 FROM "+table+" WHERE id = ?", ids(id[:]), func(*rows) error { return nil })
		if err == nil {
			return store.ErrConflict
		}
		return err
	})
}
