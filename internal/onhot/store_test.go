package onhot

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// The memory of answers stays within Total, whatever their number and size, and most of it is used.
func TestMemory(t *testing.T) {
	const total = 16 << 20
	s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Hour, Max: 1 << 20}, func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1000)
		for n := 0; n < 1<<20-2000; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	s.Cache = newCache(t, Config{Total: total})
	defer closeCache(t, s.Cache)
	before := heapInUse()
	var largest atomic.Int64
	stop, watched := make(chan struct{}), make(chan struct{})
	measure := func() {
		n := s.Stats().Bytes
		for old := largest.Load(); n > old && !largest.CompareAndSwap(old, n); old = largest.Load() {
		}
	}
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
				measure()
			}
		}
	}()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 12 {
				s.get(fmt.Sprintf("/%d/%d", g, i))
				measure()
			}
		})
	}
	wg.Wait()
	close(stop)
	<-watched
	if n := largest.Load(); n > total || n < total/2 {
		t.Errorf("at most %d bytes of %d", n, total)
	}
	if n := s.Stats().Bytes; n > total*3/4 || n < total/4 {
		t.Errorf("%d bytes of %d", n, total)
	}
	if n := s.recording.Load(); n != 0 {
		t.Errorf("%d bytes are being recorded", n)
	}
	if used, counted := heapInUse()-before, s.Stats().Bytes; used > counted+total/8 || used < counted-total/8 {
		t.Errorf("%d bytes are used, %d are counted", used, counted)
	}
}

// heapInUse returns the bytes of the heap that are reachable.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has put aside of pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// An answer for whose recording there is no memory is not shared.
func TestNoMemoryToRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Hour, Max: 1 << 20}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, 40<<10))
			time.Sleep(time.Second)
		})
		s.Cache = newCache(t, Config{Total: 256 << 10})
		defer closeCache(t, s.Cache)
		go s.get("/1")
		synctest.Wait()
		if _, res := s.ask("GET", "/2"); res.String() != "alone: full" {
			t.Error(res)
		}
		time.Sleep(2 * time.Second)
		if _, res := s.ask("GET", "/2"); res.How != Led { // it was not remembered
			t.Error(res)
		}
	})
}

// Expired answers leave without a further request, and no goroutine waits for it.
func TestIdleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, rules.OnHot{Cache: 10 * time.Second, Stale: 10 * time.Second}, slow(0))
		defer closeCache(t, s.Cache)
		s.get("/1")
		time.Sleep(15 * time.Second)
		s.get("/2")
		time.Sleep(10 * time.Second)
		if n := s.Stats().Entries; n == 0 {
			t.Error("no entry is left before the end")
		}
		time.Sleep(20 * time.Second)
		if got := s.Stats(); got.Entries != 0 || got.Bytes != 0 {
			t.Errorf("%d entries, %d bytes", got.Entries, got.Bytes)
		}
	})
}

// A recording reserves what it holds, however it is written.
func TestRecordingReservesItsMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 9000), 0, 8).Draw(t, "sizes")
		declared := rapid.Bool().Draw(t, "declared")
		limit := rapid.Int64Range(500, 40_000).Draw(t, "max")
		sum := 0
		for _, n := range sizes {
			sum += n
		}
		c, err := New(Config{Total: 128 << 10})
		if err != nil {
			t.Fatal(err)
		}
		p := NewPolicy(rules.OnHot{Coalesce: true, Max: limit})
		f := &flight{key: "k", policy: p, start: time.Now(), stamp: c.generations.stamp(newRequest("GET", "/"), ""), done: make(chan struct{})}
		w := &Recorder{cache: c, flight: f, header: make(http.Header), abandon: func() {}}
		if declared {
			w.Header().Set("Content-Length", fmt.Sprint(sum))
		}
		for _, n := range sizes {
			_, _ = w.Write(make([]byte, n))
			if w.answer != nil && int64(cap(w.answer.body)) != w.reserved || w.reserved != c.recording.Load() {
				t.Fatalf("capacity of a body of %d, %d reserved, %d in all", n, w.reserved, c.recording.Load())
			}
		}
		a, reason := w.finish()
		if a != nil && len(a.body) != sum || a == nil && reason == ReasonNone {
			t.Fatalf("%v %q", a, reason)
		}
		if a == nil && int64(sum) < limit-200 && sum < 10<<10 {
			t.Fatalf("%q though it has %d of %d bytes", reason, sum, limit)
		}
		w.close()
		if n := c.recording.Load(); n != 0 {
			t.Fatalf("%d bytes stay reserved", n)
		}
		c.store.close()
	})
}

// A leader that ends after Close stores nothing.
func TestNothingIsStoredAfterClose(t *testing.T) {
	s := newSite(t, hour, slow(0))
	s.get("/")
	closeCache(t, s.Cache)
	s.store.put("key", &entry{reason: ReasonSetCookie, until: time.Now().Add(time.Hour)}, time.Now())
	closeCache(t, s.Cache) // which looks at what is stored
}
