package redislimiter

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// patience is how long a test waits for a slow Redis.
const patience = 20 * time.Second

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// storeClient returns a client with the options that New requires.
func storeClient(tb testing.TB, addr string, edit func(*redis.Options)) *redis.Client {
	tb.Helper()
	o := &redis.Options{
		Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		// So many that none is waited for: go-redis keeps the timers of waits in a pool, from which one
		// may get into another bubble of synctest.
		PoolSize: 1000,
	}
	if edit != nil {
		edit(o)
	}
	client := redis.NewClient(o)
	tb.Cleanup(func() { client.Close() })
	return client
}

// storeOf returns a store with a long timeout.
func storeOf(tb testing.TB, client redis.UniversalClient, edit func(*Config)) *Store {
	tb.Helper()
	cfg := Config{Namespace: "shop", Timeout: patience}
	if edit != nil {
		edit(&cfg)
	}
	s, err := New(client, cfg)
	must(tb, err)
	return s
}

// hand is a clock that a test sets.
type hand struct{ ns atomic.Int64 }

func handAt(start time.Duration) *hand {
	h := new(hand)
	h.ns.Store(int64(start))
	return h
}

func (h *hand) now() time.Duration   { return time.Duration(h.ns.Load()) }
func (h *hand) pass(d time.Duration) { h.ns.Add(int64(d)) }
func (h *hand) of(c *Config)         { c.Clock = h.now }
func quota(q rules.Quota) *rules.Quota {
	q = q.WithDefaults()
	return &q
}

func rate(n int64, per time.Duration) rules.Rate { return rules.Rate{N: n, Per: per} }

// failer has the methods that testing.TB and rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func ask(f failer, b limiter.Backend, op limiter.Op) limiter.Result {
	f.Helper()
	if op.Name == "" {
		op.Name = "limit"
	}
	r, err := b.Do(context.Background(), op)
	if err != nil {
		f.Fatalf("%v", err)
	}
	return r
}

func take(f failer, b limiter.Backend, q *rules.Quota, key string, n int64) limiter.Result {
	f.Helper()
	return ask(f, b, limiter.Op{Quota: q, Key: key, Request: limiter.Request{N: n}})
}
