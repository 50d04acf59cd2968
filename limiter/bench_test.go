package limiter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// BenchmarkTokenBucket shares one hot bucket among all goroutines. It is mostly denied, as a hot
// key is, or never denied, so that every call swaps the word.
func BenchmarkTokenBucket(b *testing.B) {
	for _, c := range []struct {
		name  string
		rate  rules.Rate
		burst int64
	}{
		{"denied", rules.Rate{N: 50, Per: time.Second}, 100},
		{"admitted", rules.Rate{N: rules.MaxRate, Per: time.Second}, 1 << 50},
	} {
		b.Run(c.name, func(b *testing.B) {
			bucket := newBucket(b, c.rate, c.burst)
			start := time.Now()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					bucket.Take(time.Since(start), 1)
				}
			})
		})
	}
}

// BenchmarkKeyed asks 100,000 keys by Zipf's law, with three tables. One has room for all. One has
// room for a tenth, and its buckets fill so fast that keys come and go. One cannot drop any key, so
// that most new keys pass unlimited.
func BenchmarkKeyed(b *testing.B) {
	const keys = 100_000
	type known struct {
		hash uint64
		key  []byte
	}
	all := make([]known, keys)
	for i := range all {
		key := fmt.Appendf(nil, "GET /users/%d", i)
		all[i] = known{rules.Hash(key), key}
	}
	for _, c := range []struct {
		name string
		rate rules.Rate
		room int
	}{
		{"known", perSecond5, keys},
		{"churn", rules.Rate{N: 10_000, Per: time.Second}, keys / 10},
		{"full", perSecond5, keys / 10},
	} {
		b.Run(c.name, func(b *testing.B) {
			k := newKeyed(b, c.rate, 10, c.room)
			start := time.Now()
			var seed atomic.Uint64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				zipf := rand.NewZipf(rand.New(rand.NewPCG(1, seed.Add(1))), 1.1, 1, keys-1)
				draws := make([]known, 1<<16)
				for i := range draws {
					draws[i] = all[zipf.Uint64()]
				}
				for i := 0; pb.Next(); i++ {
					d := draws[i%len(draws)]
					k.Take(time.Since(start), d.hash, d.key, 1)
				}
			})
			s := k.Stats()
			b.ReportMetric(float64(s.Displaced)/float64(b.N), "displaced/op")
			b.ReportMetric(float64(s.Evicted)/float64(b.N), "evicted/op")
		})
	}
}

// BenchmarkMemory asks a Memory for one key from all goroutines, and for as many keys as there are
// goroutines. Then it measures each algorithm in a Bucket.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		name string
		keys uint64
	}{{"one key", 1}, {"a key each", 64}} {
		b.Run(c.name, func(b *testing.B) {
			m, err := limiter.NewMemory(limiter.MemoryConfig{})
			if err != nil {
				b.Fatal(err)
			}
			quota := &rules.Quota{Rate: perSecond5, Burst: 10}
			ctx := context.Background()
			var next atomic.Uint64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				op := limiter.Op{Quota: quota, Name: "users", Key: fmt.Sprint("GET /users/", next.Add(1)%c.keys), Request: limiter.Request{N: 1}}
				for pb.Next() {
					if _, err := m.Do(ctx, op); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkBucket(b *testing.B) {
	for _, name := range sortedQuotas {
		q := quotasOfAll[name]
		b.Run(name, func(b *testing.B) {
			bucket, err := limiter.NewBucket(&q, nil)
			if err != nil {
				b.Fatal(err)
			}
			start := time.Now()
			b.ReportAllocs()
			for b.Loop() {
				bucket.Do(time.Since(start), limiter.Request{N: 1})
			}
		})
	}
}
