package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/rules"
)

// redisTake takes one permit of each of keys.
type redisTake func(ctx context.Context, keys []string) error

var quota = rules.Quota{Rate: rules.Rate{N: perSecond, Per: time.Second}, Burst: burst}

// redisPeers are the libraries that ask Redis for a limit.
var redisPeers = []struct {
	name string
	make func(client *redis.Client) (redisTake, error)
}{
	{"hotparam", func(client *redis.Client) (redisTake, error) {
		store, err := redislimiter.New(client, redislimiter.Config{
			Namespace: "bench", Timeout: time.Second, Tag: func(string, string) string { return "one" }, // slot
		})
		if err != nil {
			return nil, err
		}
		lim, err := limiter.New(store, "search", quota)
		if err != nil {
			return nil, err
		}
		var asked []limiter.Claim
		return func(ctx context.Context, keys []string) error {
			if len(keys) == 1 {
				_, err := lim.AllowN(ctx, keys[0], 1)
				return err
			}
			asked = asked[:0]
			for _, key := range keys {
				asked = append(asked, limiter.Claim{Limiter: lim, Key: key, N: 1})
			}
			_, err := limiter.AllowAll(ctx, asked...)
			return err
		}, nil
	}},
	{"redis_rate", func(client *redis.Client) (redisTake, error) {
		l := redis_rate.NewLimiter(client)
		limit := redis_rate.Limit{Rate: perSecond, Burst: burst, Period: time.Second}
		return each(func(ctx context.Context, key string) error {
			_, err := l.Allow(ctx, key, limit)
			return err
		}), nil
	}},
	{"throttled", func(client *redis.Client) (redisTake, error) {
		store, err := goredisstore.NewCtx(client, "throttled:")
		if err != nil {
			return nil, err
		}
		l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst - 1})
		if err != nil {
			return nil, err
		}
		return each(func(ctx context.Context, key string) error {
			_, _, err := l.RateLimitCtx(ctx, key, 1)
			return err
		}), nil
	}},
	{"ulule", func(client *redis.Client) (redisTake, error) {
		store, err := ululeredis.NewStore(client)
		if err != nil {
			return nil, err
		}
		l := ulule.New(store, ulule.Rate{Period: time.Second, Limit: perSecond})
		return each(func(ctx context.Context, key string) error {
			_, err := l.Get(ctx, key)
			return err
		}), nil
	}},
}

func each(take func(ctx context.Context, key string) error) redisTake {
	return func(ctx context.Context, keys []string) error {
		for _, key := range keys {
			if err := take(ctx, key); err != nil {
				return err
			}
		}
		return nil
	}
}

// BenchmarkRedisOne asks Redis about one hot key.
func BenchmarkRedisOne(b *testing.B) { redisBenchmark(b, []string{"GET /users/1"}) }

// BenchmarkRedisTen asks Redis about ten keys, like a request that matches ten rules.
func BenchmarkRedisTen(b *testing.B) {
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprintf("GET /users/%d", i))
	}
	redisBenchmark(b, keys)
}

func redisBenchmark(b *testing.B, keys []string) {
	client := startRedis(b)
	trips := &roundTrips{}
	client.AddHook(trips)
	for _, peer := range redisPeers {
		b.Run(peer.name, func(b *testing.B) {
			take, err := peer.make(client)
			if err == nil {
				err = take(b.Context(), keys) // loads the scripts
			}
			if err != nil {
				b.Fatal(err)
			}
			trips.n = 0
			b.ReportAllocs()
			for b.Loop() {
				if err := take(b.Context(), keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(trips.n)/float64(b.N), "trips/op")
		})
	}
}

// startRedis runs its own server until the benchmark ends.
func startRedis(b *testing.B) *redis.Client {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		b.Skip("redis-server is not in PATH")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	server := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", b.TempDir())
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	b.Cleanup(func() {
		_ = client.Close()
		_ = server.Process.Kill()
		_ = server.Wait() // killed
	})
	for end := time.Now().Add(10 * time.Second); client.Ping(b.Context()).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal(errors.New("redis-server does not answer"))
		}
	}
	return client
}

// roundTrips counts a client's calls to its server.
type roundTrips struct{ n int }

func (r *roundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.n++
		return next(ctx, cmd)
	}
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.n++
		return next(ctx, cmds)
	}
}
