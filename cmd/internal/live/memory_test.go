package live

import (
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

// A view of 1,000 keys with all their points, and of keys that come and go, stays small.
func TestHistoriesAreBounded(t *testing.T) {
	r := newReader(nil, Config{Namespace: "shop"})
	before := heap()
	scores := make([]redis.Z, 0, 1200)
	for i := range 1200 {
		scores = append(scores, redis.Z{Member: hot(i, 1).Key.String(), Score: float64(i)})
	}
	keys := make([]published.Hot, len(scores))
	for i := range keys {
		keys[i] = hot(i, 1)
	}
	now := time.Now()
	for second := range MaxPoints + slack + 10 {
		at := now.Add(time.Duration(second) * time.Second)
		for i, z := range scores {
			h := keys[i]
			h.Until = at.Add(time.Minute)
			r.keys[z.Member.(string)] = keyOf(r.keys[z.Member.(string)], h, at)
		}
		r.list(&Snapshot{Read: at, Clock: at, Published: true}, scores, nil)
	}
	with := 0
	for _, k := range r.keys {
		with += min(1, k.history.Len())
	}
	used := heap() - before
	t.Logf("%d keys, %d with a history, %d bytes", len(r.keys), with, used)
	if with != MaxHistories || used > 16<<20 {
		t.Errorf("%d keys have a history, want %d; %d bytes", with, MaxHistories, used)
	}
	// All keys cool, and are forgotten.
	later := now.Add(time.Hour)
	r.list(&Snapshot{Read: later, Clock: later, Published: true}, nil, nil)
	later = later.Add(2 * keepCooled)
	r.list(&Snapshot{Read: later, Clock: later, Published: true}, nil, nil)
	if len(r.keys) != 0 {
		t.Errorf("%d keys that cooled are kept", len(r.keys))
	}
}

func keyOf(k *keyDetails, h published.Hot, at time.Time) *keyDetails {
	if k == nil {
		k = &keyDetails{}
	}
	k.hot, k.read = h, at
	return k
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
