package redisstore_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/internal/redistest"
	"github.com/godwit-hq/godwit/receiver/redisstore"
	"github.com/godwit-hq/godwit/receiver/storetest"
)

func TestMain(m *testing.M) {
	os.Exit(storetest.Main(m, func(_ context.Context, name string) (receiver.Store, error) {
		url, prefix, _ := strings.Cut(name, " ")
		o, err := redis.ParseURL(url)
		if err != nil {
			return nil, err
		}
		return redisstore.New(redis.NewClient(o), redisstore.Options{Prefix: prefix}), nil
	}))
}

func fresh(t *testing.T) receiver.Store {
	client, prefix := redistest.Client(t)
	return redisstore.New(client, redisstore.Options{Prefix: prefix})
}

func TestStore(t *testing.T) { storetest.Run(t, fresh) }

func TestConcurrency(t *testing.T) {
	trace.Covers(t, "IKH-RSP-7", "CCW-IDM-7")
	storetest.RunConcurrency(t, fresh)
}

func TestProcesses(t *testing.T) {
	trace.Covers(t, "CCW-IDM-7", "IKH-EXP-3")
	storetest.RunProcesses(t, func(t *testing.T) (receiver.Store, string) {
		client, prefix := redistest.Client(t)
		return redisstore.New(client, redisstore.Options{Prefix: prefix}), redistest.URL(t) + " " + prefix
	})
}

func TestTx(t *testing.T) {
	storetest.RunTx(t, func(t *testing.T) storetest.TxStore {
		client, prefix := redistest.Client(t)
		return storetest.TxStore{
			Store: redisstore.New(client, redisstore.Options{Prefix: prefix}),
			Effect: func(ctx context.Context) error {
				if !redisstore.Queue(ctx, "INCRBY", prefix+"effects", 1) {
					return errors.New("not queued")
				}
				return nil
			},
			Count: func(t *testing.T) int {
				n, err := client.Get(t.Context(), prefix+"effects").Int()
				if err != nil && !errors.Is(err, redis.Nil) {
					t.Fatal(err)
				}
				return n
			},
		}
	})
}

// TestEverythingExpires: Redis is left with nothing that would stay for ever.
func TestEverythingExpires(t *testing.T) {
	client, prefix := redistest.Client(t)
	s := redisstore.New(client, redisstore.Options{Prefix: prefix})
	h := receiver.Hold{Scope: storetest.ScopeOf("k"), Token: "a"}
	ctx, now := t.Context(), storetest.Start
	if _, err := s.Reserve(ctx, receiver.Reserve{Hold: h, Now: now, LeaseUntil: now.Add(60e9)}); err != nil {
		t.Fatal(err)
	}
	wantTTL(t, client, prefix, 60)
	if ok, err := s.Complete(ctx, h, receiver.Completion{Outcome: receiver.Outcome{Status: 204}, Now: now, Until: now.Add(3600e9)}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := s.Remember(ctx, storetest.ScopeOf("n"), now.Add(300e9), now); err != nil {
		t.Fatal(err)
	}
	wantTTL(t, client, prefix, 3600)
}

func wantTTL(t *testing.T, client *redis.Client, prefix string, most float64) {
	t.Helper()
	keys, err := client.Keys(t.Context(), prefix+"*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	for _, key := range keys {
		left, err := client.TTL(t.Context(), key).Result()
		if err != nil || left <= 0 || left.Seconds() > most {
			t.Errorf("%s lives for %s, %v", key, left, err)
		}
	}
}

// TestLostReply: a client that lost the reply asks again, and is recognised as the same holder.
func TestLostReply(t *testing.T) {
	s := fresh(t)
	r := receiver.Reserve{Hold: receiver.Hold{Scope: storetest.ScopeOf("k"), Token: "a"}, Now: storetest.Start, LeaseUntil: storetest.Start.Add(60e9)}
	for range 2 {
		if found, err := s.Reserve(t.Context(), r); err != nil || found.State != receiver.Reserved {
			t.Fatal(found, err)
		}
	}
}

// TestQueueTooLate: a command that comes when the handler has returned is not run, and that is said.
func TestQueueTooLate(t *testing.T) {
	s := fresh(t).(receiver.Transactor)
	for _, end := range []func(receiver.Tx) error{
		func(tx receiver.Tx) error { return tx.Rollback(t.Context()) },
		func(tx receiver.Tx) error {
			_, err := tx.Complete(t.Context(), receiver.Completion{Outcome: receiver.Outcome{Status: 204}, Now: storetest.Start, Until: storetest.Start.Add(60e9)})
			return err
		},
	} {
		h := receiver.Hold{Scope: storetest.ScopeOf("k"), Token: "a"}
		if _, err := s.Reserve(t.Context(), receiver.Reserve{Hold: h, Now: storetest.Start, LeaseUntil: storetest.Start.Add(60e9)}); err != nil {
			t.Fatal(err)
		}
		tx, err := s.Begin(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		if redisstore.Queue(tx.Context(t.Context()), "INCR", "x") {
			t.Error("queued after the end")
		}
	}
}

func TestQueueOutsideAHandler(t *testing.T) {
	if redisstore.Queue(t.Context(), "INCR", "x") {
		t.Error("queued nowhere")
	}
}
