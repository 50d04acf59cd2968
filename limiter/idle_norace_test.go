//go:build !race

package limiter_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// A million keys come once each. Their number is bounded, they cost no goroutine, and they are
// freed although afterwards only one known key is asked.
func TestAMillionIdleKeys(t *testing.T) {
	count := 1_000_000
	if testing.Short() {
		count /= 10
	}
	heap := func() float64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc) / float64(count)
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	m, now := memoryAt(t, limiter.MemoryConfig{MaxKeys: count})
	q := &rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 5}
	for i := range count * 5 / 4 {
		memoryDo(t, m, q, strconv.Itoa(i), limiter.Request{N: 1})
	}
	full := heap() - before
	if s := m.Stats(); s.Keys != int64(count) || s.Displaced < uint64(count/4) || runtime.NumGoroutine() > goroutines {
		t.Errorf("%+v, %d goroutines, before %d", s, runtime.NumGoroutine(), goroutines)
	}
	for range 4000 { // 40 seconds
		now.Add(int64(10 * time.Millisecond))
		memoryDo(t, m, q, "known", limiter.Request{N: 1})
	}
	idle := heap() - before
	t.Logf("%.0f bytes a key, of which %.0f are reserved", full, idle)
	if s := m.Stats(); s.Keys > 1 || full > 300 || idle > 32 {
		t.Errorf("%+v: %.0f bytes a key while all are held, %.0f when none is", s, full, idle)
	}
	runtime.KeepAlive(m)
}
