package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// References of sealed rows: the kind, and the id in hexadecimal. They sort by kind, then by id.
const (
	endpointRef = "endpoint/"
	secretRef   = "secret/"
	sourceRef   = "source/"
)

// sealedRows lists and replaces the values that are encrypted at rest.
type sealedRows struct{ *database }

// SealedRows pages through sealed values of endpoints, of secrets, then of sources. It includes deleted endpoints and expired
// secrets, so that after re-encryption no row needs an old key.
func (s *sealedRows) SealedRows(ctx context.Context, after string, limit int) ([]store.SealedRow, error) {
	r, err := s.pool.Query(ctx, `SELECT kind, id, sealed FROM (
			SELECT '`+endpointRef+`' AS kind, id, sealed FROM endpoints WHERE octet_length(sealed) > 0
			UNION ALL SELECT '`+secretRef+`', id, sealed FROM endpoint_secrets WHERE octet_length(sealed) > 0
			UNION ALL SELECT '`+sourceRef+`', id, sealed FROM sources WHERE octet_length(sealed) > 0) AS rows
		WHERE (kind || encode(uuid_send(id), 'hex')) COLLATE "C" > $1
		ORDER BY (kind || encode(uuid_send(id), 'hex')) COLLATE "C" LIMIT $2`, clean(after), max(limit, 0))
	if err != nil {
		return nil, failed("list sealed values", err)
	}
	list, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (store.SealedRow, error) {
		var kind string
		var id [16]byte
		var row store.SealedRow
		err := r.Scan(&kind, &id, &row.Sealed)
		row.Ref = kind + hex.EncodeToString(id[:])
		switch kind {
		case endpointRef:
			row.Bound = godwit.EndpointID(id).String()
		case sourceRef:
			row.Bound = godwit.SourceID(id).String()
		default:
			row.Bound = godwit.SecretID(id).String()
		}
		return row, err
	})
	return list, failed("list sealed values", err)
}

// ReplaceSealed writes a value back if the row still holds the old one.
func (s *sealedRows) ReplaceSealed(ctx context.Context, row store.SealedRow, sealed []byte) error {
	table, set := "endpoints", "sealed = $3, version = version + 1"
	text, ok := strings.CutPrefix(row.Ref, endpointRef)
	if !ok {
		text, ok = strings.CutPrefix(row.Ref, sourceRef)
		table = "sources"
	}
	if !ok {
		text, ok = strings.CutPrefix(row.Ref, secretRef)
		table, set = "endpoint_secrets", "sealed = $3"
	}
	id, err := hex.DecodeString(text)
	if !ok || err != nil || len(id) != 16 {
		return fmt.Errorf("replace sealed value: %w: %q is no reference", store.ErrNotFound, row.Ref)
	}
	tag, err := s.pool.Exec(ctx, `UPDATE `+table+` SET `+set+` WHERE id = $1 AND sealed = $2`, [16]byte(id), row.Sealed, sealed)
	if err != nil || tag.RowsAffected() == 1 {
		return failed("replace sealed value", err)
	}
	var there bool
	if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+` WHERE id = $1)`, [16]byte(id)).Scan(&there); err != nil {
		return failed("replace sealed value", err)
	}
	if there {
		return fmt.Errorf("replace sealed value: %w: it has changed", store.ErrConflict)
	}
	return fmt.Errorf("replace sealed value: %w", store.ErrNotFound)
}
