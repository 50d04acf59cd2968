package benchmarks

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/httprate"
	"github.com/puzpuzpuz/xsync/v4"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Each limiter limits a key to 50 a second with a burst of 100, or to its nearest equivalent, and
// reads the clock itself. A hot key is nearly always refused.
const (
	perSecond = 50
	burst     = 100
)

// BenchmarkLimitOne limits one key with a limiter made for a single key.
func BenchmarkLimitOne(b *testing.B) {
	b.Run("hotparam", func(b *testing.B) {
		l := limiter.NewLocal(perSecond, burst)
		run(b, []string{""}, func(string) bool { return l.Allow() })
	})
	b.Run("x/time/rate", func(b *testing.B) {
		l := rate.NewLimiter(perSecond, burst)
		run(b, []string{""}, func(string) bool { return l.Allow() })
	})
}

// BenchmarkLimitHot limits one hot key with a limiter made for many keys.
func BenchmarkLimitHot(b *testing.B) { limiters(b, []string{"GET /users/1"}) }

// BenchmarkLimitKeys limits 100,000 keys that occur by Zipf's law.
func BenchmarkLimitKeys(b *testing.B) { limiters(b, texts("GET /users/%d", zipf(distinct))) }

// limiters runs all limiters that hold many keys. The keys are strings. Only the project's own
// limiter takes bytes and their hash, as the guard has them. Here it hashes within the loop.
func limiters(b *testing.B, keys []string) {
	b.Run("hotparam", func(b *testing.B) {
		held, err := limiter.NewKeys(&rules.Quota{Rate: rules.Rate{N: perSecond, Per: time.Second}, Burst: burst}, distinct, nil)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		var buf [64]byte
		run(b, keys, func(key string) bool {
			member := append(buf[:0], key...)
			return held.Do(time.Since(start), rules.Hash(member), member, limiter.Request{N: 1}).Allowed
		})
		if n := held.Stats().Displaced; n > 0 {
			b.Errorf("%d keys lost their places", n)
		}
	})
	for _, a := range []rules.Algorithm{rules.TokenBucket, rules.FixedWindow, rules.SlidingLog, rules.SlidingBlocks} {
		b.Run("hotparam_Limiter_"+string(a), func(b *testing.B) {
			backend, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: distinct})
			if err != nil {
				b.Fatal(err)
			}
			lim, err := limiter.New(backend, "users", rules.Quota{Algorithm: a, Rate: rules.Rate{N: perSecond, Per: time.Second}})
			if err != nil {
				b.Fatal(err)
			}
			run(b, keys, func(key string) bool {
				d, err := lim.AllowN(context.Background(), key, 1)
				if err != nil {
					b.Fatal(err)
				}
				return d.Allowed
			})
		})
	}
	b.Run("x/time/rate_in_sync.Map", func(b *testing.B) {
		var m sync.Map
		run(b, keys, func(key string) bool {
			l, ok := m.Load(key)
			if !ok {
				l, _ = m.LoadOrStore(key, rate.NewLimiter(perSecond, burst))
			}
			return l.(*rate.Limiter).Allow()
		})
	})
	b.Run("x/time/rate_in_xsync.Map", func(b *testing.B) {
		m := xsync.NewMap[string, *rate.Limiter]()
		run(b, keys, func(key string) bool {
			l, ok := m.Load(key)
			if !ok {
				l, _ = m.LoadOrStore(key, rate.NewLimiter(perSecond, burst))
			}
			return l.Allow()
		})
	})
	b.Run("go-limiter", func(b *testing.B) {
		store, err := memorystore.New(&memorystore.Config{Tokens: perSecond, Interval: time.Second})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close(context.Background())
		run(b, keys, func(key string) bool {
			_, _, _, ok, err := store.Take(context.Background(), key)
			if err != nil {
				b.Fatal(err)
			}
			return ok
		})
	})
	b.Run("throttled", func(b *testing.B) {
		store, err := memstore.NewCtx(0)
		if err != nil {
			b.Fatal(err)
		}
		l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst - 1})
		if err != nil {
			b.Fatal(err)
		}
		run(b, keys, func(key string) bool {
			limited, _, err := l.RateLimitCtx(context.Background(), key, 1)
			if err != nil {
				b.Fatal(err)
			}
			return !limited
		})
	})
	b.Run("ulule", func(b *testing.B) {
		l := ulule.New(memory.NewStore(), ulule.Rate{Period: time.Second, Limit: perSecond})
		run(b, keys, func(key string) bool {
			c, err := l.Get(context.Background(), key)
			if err != nil {
				b.Fatal(err)
			}
			return !c.Reached
		})
	})
	b.Run("httprate", func(b *testing.B) {
		l := httprate.NewRateLimiter(perSecond, time.Second)
		w := headerOnly{}
		r, err := http.NewRequest("GET", "/users/1", nil)
		if err != nil {
			b.Fatal(err)
		}
		run(b, keys, func(key string) bool { return !l.OnLimit(w, r, key) })
	})
}

// run takes every key once, so that the limiter knows them all, and then measures. The limiter
// gets copies first, since each request brings its own bytes, and a map compares a string with
// itself for free.
func run(b *testing.B, keys []string, take func(key string) bool) {
	for _, key := range keys {
		take(strings.Clone(key))
	}
	allowed := 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if take(keys[i%len(keys)]) {
			allowed++
		}
	}
	if allowed == b.N && len(keys) == 1 && b.N > 100*burst {
		b.Error("a hot key was never refused")
	}
}

// headerOnly is a response whose headers are set and never sent.
type headerOnly http.Header

func (h headerOnly) Header() http.Header         { return http.Header(h) }
func (h headerOnly) Write(p []byte) (int, error) { return len(p), nil }
func (h headerOnly) WriteHeader(int)             {}

// BenchmarkLimitHandler measures a one-line middleware that limits by the client's address, around
// a handler that does nothing. All requests pass.
func BenchmarkLimitHandler(b *testing.B) { limitHandlers(b, 1<<30, false) }

// BenchmarkLimitHandlerRefused measures the same for refused requests, with their answer.
func BenchmarkLimitHandlerRefused(b *testing.B) { limitHandlers(b, 1, true) }

func limitHandlers(b *testing.B, perHour int, refuses bool) {
	handler := func(name string, limit func(http.Handler) http.Handler) {
		b.Run(name, func(b *testing.B) {
			passed := 0
			h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
			r, err := http.NewRequest("GET", "/users/1", http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			r.RemoteAddr = "192.0.2.1:1234"
			w := headerOnly{}
			h.ServeHTTP(w, r)
			passed = 0
			b.ReportAllocs()
			for b.Loop() {
				clear(w)
				h.ServeHTTP(w, r)
			}
			if refuses != (passed == 0) {
				b.Errorf("%d passed", passed)
			}
		})
	}
	handler("hotparam", middleware.Limit(limiter.Per(int64(perHour), time.Hour), "addr:ip"))
	handler("httprate", httprate.LimitByIP(perHour, time.Hour))
}
