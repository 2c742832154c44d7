// Package redistest gives each test its own part of a Redis server.
//
// It starts no server: without one the test fails and says how to get one. In short mode it skips the test.
package redistest

import (
	"crypto/rand"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/godwit-hq/godwit/internal/slowtest"
)

// Variable names the environment variable with the URL of a server that the tests may use.
const Variable = "GODWIT_TEST_REDIS"

// URL is the server's.
func URL(t testing.TB) string {
	t.Helper()
	slowtest.Needs(t, "Redis")
	url := os.Getenv(Variable)
	if url == "" {
		t.Fatalf("no Redis for this test: run `make test`, `scripts/with-redis go test …`, or set %s", Variable)
	}
	return url
}

// Client connects to the server, and makes a prefix for the test's own keys.
func Client(t testing.TB) (client *redis.Client, prefix string) {
	t.Helper()
	o, err := redis.ParseURL(URL(t))
	if err != nil {
		t.Fatalf("%s: %v", Variable, err)
	}
	client = redis.NewClient(o)
	t.Cleanup(func() { client.Close() })
	return client, "test:" + rand.Text() + ":"
}
