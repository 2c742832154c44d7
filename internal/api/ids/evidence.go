package ids

import (
	"crypto/ed25519"
	"encoding/base64"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/problem"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

func (s *server) evidence(c *httpapi.Call) error {
	q, err := httpapi.ReadQuery(c.R.URL, []string{"idempotency_key", "command_id", "target", "after", "limit"})
	if err != nil {
		return err
	}
	query := command.EvidenceQuery{Tenant: c.Tenant().String(), Key: q.Get("idempotency_key"), CommandID: q.Get("command_id"), Target: q.Get("target")}
	after, err := number(q.Get("after"), "after", 0, 0)
	if err != nil {
		return err
	}
	limit, err := number(q.Get("limit"), "limit", defaultPage, maxPage)
	if err != nil {
		return err
	}
	query.After, query.Limit = after, int(limit)
	items, err := s.cfg.Evidence.Evidence(c.R.Context(), query)
	if err != nil {
		return err
	}
	out := map[string]any{"evidence": items}
	if items == nil {
		out["evidence"] = []evidence.Item{}
	}
	if len(items) == query.Limit {
		out["next_after"] = items[len(items)-1].Seq
	}
	return write(c, http.StatusOK, out)
}

// prefers reports whether an Accept field gives one media type more weight than other. Equal weights are no preference.
func prefers(accept []string, one, other string) bool {
	return weight(accept, one) > weight(accept, other)
}

// weight returns the weight of the most specific media range that matches the type (RFC 9110, section 12.5.1).
func weight(accept []string, media string) float64 {
	kind, _, _ := strings.Cut(media, "/")
	best, q := 0, 0.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		specific := map[string]int{media: 3, kind + "/*": 2, "*/*": 1}[name]
		if specific <= best {
			continue
		}
		best, q = specific, 1
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				q = 0
			}
		}
	}
	return q
}

// number reads a query parameter; there is no upper bound if most is 0.
func number(text, name string, otherwise, most int64) (int64, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || most > 0 && (n < 1 || n > most) {
		if most > 0 {
			return 0, problem.InvalidRequest.In(name, "must be a number from 1 to %d", most)
		}
		return 0, problem.InvalidRequest.In(name, "must be a number, 0 or more")
	}
	return n, nil
}

// export writes the chain as lines that `godwit evidence verify` checks offline. Records that are appended during the export
// are left for the next one.
func (s *server) export(c *httpapi.Call) error {
	ctx := c.R.Context()
	q, err := httpapi.ReadQuery(c.R.URL, []string{"from_seq"})
	if err != nil {
		return err
	}
	from, err := number(q.Get("from_seq"), "from_seq", 1, 0)
	if err != nil {
		return err
	}
	after := max(from, 1) - 1
	tenant := c.Tenant().String()
	head, err := s.cfg.Evidence.EvidenceHead(ctx, tenant)
	if err != nil {
		return err
	}
	if after > head.Seq {
		return problem.InvalidRequest.In("from_seq", "the chain ends at %d", head.Seq)
	}
	control := http.NewResponseController(c.W)
	h := c.W.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Content-Disposition", `attachment; filename="evidence.ndjson"`)
	out, err := evidence.NewExporter(c.W, s.cfg.EvidenceKey, tenant, head, after+1, s.clock.Now())
	if err != nil {
		return err
	}
	for seq := after; seq < head.Seq; {
		control.SetWriteDeadline(time.Now().Add(s.cfg.Stall))
		items, err := s.cfg.Evidence.Evidence(ctx, command.EvidenceQuery{Tenant: tenant, After: seq, Limit: int(min(maxPage, head.Seq-seq))})
		if err == nil {
			err = c.Recheck() // the key may have been revoked, the session have ended
		}
		if err != nil || len(items) == 0 {
			// The header announced more records, so the truncated file does not verify.
			panic(http.ErrAbortHandler)
		}
		if err := out.Append(items...); err != nil {
			panic(http.ErrAbortHandler)
		}
		seq = items[len(items)-1].Seq
	}
	return ignore(out.Close())
}

// pemType is the media type of a public key in PEM.
const pemType = "application/x-pem-file"

// evidenceKey returns the public key of exports and checkpoints: as PEM if the client prefers it, otherwise as JSON.
func (s *server) evidenceKey(c *httpapi.Call) error {
	pub := s.cfg.EvidenceKey.Public().(ed25519.PublicKey)
	h := c.W.Header()
	h.Add("Vary", "Accept")
	if prefers(c.R.Header.Values("Accept"), pemType, "application/json") {
		text, err := evidence.MarshalPublicKey(pub)
		if err != nil {
			return err
		}
		h.Set("Content-Type", pemType)
		h.Set("Content-Disposition", `attachment; filename="evidence.pub"`)
		_, err = c.W.Write(text)
		return ignore(err)
	}
	return write(c, http.StatusOK, map[string]string{
		"algorithm": "ed25519", "key_id": evidence.KeyID(pub), "public_key": base64.StdEncoding.EncodeToString(pub),
	})
}
