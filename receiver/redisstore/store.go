package redisstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/internal/record"
)

// Options configure a store.
type Options struct {
	// Prefix is put before every key. Defaults to "godwit:".
	Prefix string
}

// Store is a store in Redis. It may be used concurrently.
type Store struct {
	client redis.Scripter
	prefix string
}

var _ receiver.Transactor = (*Store)(nil)

// New makes a store. Close the client yourself: *redis.Client, *redis.ClusterClient or *redis.Ring.
func New(client redis.Scripter, o Options) *Store {
	if o.Prefix == "" {
		o.Prefix = "godwit:"
	}
	return &Store{client, o.Prefix}
}

// entry is the value of a key.
type entry struct {
	Token       string   `json:"token"`
	Fingerprint string   `json:"fingerprint"`
	Until       int64    `json:"until,omitempty"`
	Outcome     *outcome `json:"outcome,omitempty"`
}

type outcome struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
}

// Scripts compare the holder's token and change the key in one step. The time is the caller's. Redis also expires entries by
// its own clock, so that nothing needs to be purged. A client that lost the reply sends a script again: if it finds its own
// token, the first call succeeded.
var (
	reserveScript = redis.NewScript(`local held = redis.call('GET', KEYS[1])
if held then
  local entry = cjson.decode(held)
  if entry.token == ARGV[4] and not entry.outcome then return false end
  if not entry['until'] or entry['until'] > tonumber(ARGV[3]) then return held end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false`)

	completeScript = redis.NewScript(`local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local entry = cjson.decode(held)
if entry.token ~= ARGV[1] or entry.outcome then return 0 end
local at = 4
while at <= #ARGV do
  local size = tonumber(ARGV[at])
  local command = {}
  for i = 1, size do command[i] = ARGV[at + i] end
  redis.call(unpack(command))
  at = at + size + 1
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`)

	releaseScript = redis.NewScript(`local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local entry = cjson.decode(held)
if entry.token ~= ARGV[1] or entry.outcome then return 0 end
return redis.call('DEL', KEYS[1])`)

	holdsScript = redis.NewScript(`local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local entry = cjson.decode(held)
if entry.token ~= ARGV[1] or entry.outcome then return 0 end
return 1`)

	rememberScript = redis.NewScript(`local known = redis.call('GET', KEYS[1])
if known == ARGV[1] then return 1 end
if known and (known == '1' or tonumber(string.match(known, '^%d+')) > tonumber(ARGV[3])) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)
)

func (s *Store) key(scope receiver.Digest) []string {
	return []string{s.prefix + "key:" + scope.String()}
}

func ttl(until, now time.Time) string {
	return strconv.FormatInt(max(1, until.Sub(now).Milliseconds()), 10)
}

// Reserve implements [receiver.Store].
func (s *Store) Reserve(ctx context.Context, r receiver.Reserve) (receiver.Reservation, error) {
	text, err := json.Marshal(entry{Token: r.Token, Fingerprint: record.Digest(r.Fingerprint), Until: record.Millis(r.LeaseUntil)})
	if err != nil {
		return receiver.Reservation{}, fmt.Errorf("take key: %w", err)
	}
	held, err := reserveScript.Run(ctx, s.client, s.key(r.Scope), text, ttl(r.LeaseUntil, r.Now), record.Millis(r.Now), r.Token).Text()
	switch {
	case errors.Is(err, redis.Nil):
		return receiver.Reservation{State: receiver.Reserved}, nil
	case err != nil:
		return receiver.Reservation{}, fmt.Errorf("take key: %w", err)
	}
	return readEntry(held)
}

func readEntry(text string) (receiver.Reservation, error) {
	var e entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return receiver.Reservation{}, fmt.Errorf("read key: %w", err)
	}
	row := record.Row{Fingerprint: e.Fingerprint}
	if e.Outcome != nil {
		headers, err := json.Marshal(e.Outcome.Headers)
		if err != nil {
			return receiver.Reservation{}, fmt.Errorf("read key: %w", err)
		}
		row.Status = sql.NullInt64{Int64: int64(e.Outcome.Status), Valid: true}
		row.Headers = sql.NullString{String: string(headers), Valid: true}
		if e.Outcome.Body != nil {
			row.Body = sql.NullString{String: *e.Outcome.Body, Valid: true}
		}
	}
	return row.Reservation()
}

// Complete implements [receiver.Store].
func (s *Store) Complete(ctx context.Context, h receiver.Hold, c receiver.Completion) (bool, error) {
	return s.complete(ctx, h, c, nil)
}

func (s *Store) complete(ctx context.Context, h receiver.Hold, c receiver.Completion, commands []any) (bool, error) {
	text, err := completedEntry(h, c)
	if err != nil {
		return false, fmt.Errorf("complete key: %w", err)
	}
	args := append([]any{h.Token, text, ttl(c.Until, c.Now)}, commands...)
	n, err := completeScript.Run(ctx, s.client, s.key(h.Scope), args...).Int()
	if err != nil {
		return false, fmt.Errorf("complete key: %w", err)
	}
	return n == 1, nil
}

func completedEntry(h receiver.Hold, c receiver.Completion) ([]byte, error) {
	headers, err := record.Header(c.Header)
	if err != nil {
		return nil, err
	}
	kept := &outcome{Status: c.Status}
	if err := json.Unmarshal([]byte(headers), &kept.Headers); err != nil {
		return nil, err
	}
	if body := record.Body(c.Body); body.Valid {
		kept.Body = &body.String
	}
	return json.Marshal(entry{Token: h.Token, Fingerprint: record.Digest(h.Fingerprint), Until: record.Millis(c.Until), Outcome: kept})
}

// Release implements [receiver.Store].
func (s *Store) Release(ctx context.Context, h receiver.Hold) error {
	if err := releaseScript.Run(ctx, s.client, s.key(h.Scope), h.Token).Err(); err != nil {
		return fmt.Errorf("release key: %w", err)
	}
	return nil
}

// Remember implements [receiver.Store].
func (s *Store) Remember(ctx context.Context, value receiver.Digest, until, now time.Time) (bool, error) {
	key := []string{s.prefix + "nonce:" + value.String()}
	mark := strconv.FormatInt(record.Millis(until), 10) + " " + record.Token()
	n, err := rememberScript.Run(ctx, s.client, key, mark, ttl(until, now), record.Millis(now)).Int()
	if err != nil {
		return false, fmt.Errorf("remember value: %w", err)
	}
	return n == 1, nil
}

// Purge implements [receiver.Store]: Redis expires entries by itself.
func (s *Store) Purge(context.Context, time.Time, int) (int, error) { return 0, nil }
