package graphitesource

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The job runs a while after each second, never twice at once, and skipped runs are counted.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second))
		var mu sync.Mutex
		var asked []time.Duration
		begun, took := time.Now(), time.Duration(0)
		w.graphite.breakBy(func(http.ResponseWriter, *http.Request) bool {
			mu.Lock()
			asked = append(asked, time.Since(begun))
			pause := took
			took = 0
			mu.Unlock()
			time.Sleep(pause)
			return false
		})
		w.start()
		time.Sleep(3500 * time.Millisecond)
		mu.Lock()
		took = 2500 * time.Millisecond
		mu.Unlock()
		time.Sleep(4 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		want := []time.Duration{250, 1250, 2250, 3250, 4250, 7250}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if got := asked; !slices.Equal(got, want) {
			t.Errorf("asked at %v, want %v", got, want)
		}
		if s := w.source.Stats(); s.Skipped != 2 || s.Polls != 6 {
			t.Errorf("stats %+v", s)
		}
	})
}

// A panic of the job ends neither the program nor the job.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 10, 10*time.Second))
		publisher := w.source.job.hot.Publisher
		w.source.job.hot.Publisher = nil // Publish will panic
		w.start()
		for range 3 {
			w.flush(map[string]float64{"q=a": 10})
		}
		w.polled()
		s := w.source.Stats()
		if s.Panics == 0 || w.log.count("level=ERROR", "panicked", "stack=") != 1 {
			t.Errorf("%d panics; logged %q", s.Panics, w.log.lines)
		}
		w.source.busy.Lock()
		w.source.job.hot.Publisher = publisher
		w.source.busy.Unlock()
		for range 3 {
			w.flush(map[string]float64{"q=b": 10})
		}
		w.polled()
		if _, hot := w.hot.get("q=b"); !hot {
			t.Error("it does not go on")
		}
	})
}

// Run ends with its context, whatever Graphite does, and waits for its job.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second))
		var inside atomic.Bool
		w.graphite.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
			inside.Store(true)
			<-r.Context().Done()
			time.Sleep(50 * time.Millisecond)
			inside.Store(false)
			return true
		})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- w.source.Run(ctx) }()
		time.Sleep(2 * time.Second)
		if !inside.Load() {
			t.Fatal("nothing was asked")
		}
		cancel()
		if err := <-ended; err != nil || inside.Load() {
			t.Errorf("told %v, inside: %v", err, inside.Load())
		}
		if s := w.source.Stats(); s.Failures["timeout"] != 0 || w.log.count() != 0 {
			t.Errorf("the end is a failure: %+v, %q", s, w.log.lines)
		}
	})
}

// The source reports that it has no answer yet, and that StatsD has not written yet.
func TestStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second))
		if s := w.source.Stats(); !s.Frozen || s.Why == "" || s.Behind != 0 {
			t.Errorf("before the start: %+v", s)
		}
		w.start()
		time.Sleep(4 * time.Second)
		if w.log.count() != 0 {
			t.Errorf("logged %q in the first seconds", w.log.lines)
		}
		time.Sleep(4 * time.Second)
		if s := w.source.Stats(); !s.Frozen || s.Failures["silent"] == 0 || w.log.count("reason=silent", "statsd.numStats") != 1 {
			t.Errorf("with no heartbeat: %+v, logged %q", s, w.log.lines)
		}
		w.flush(map[string]float64{"q=a": 100})
		w.polled()
		if s := w.source.Stats(); s.Frozen || s.Why != "" || w.log.count("gives counts again") != 1 {
			t.Errorf("with one: %+v, logged %q", s, w.log.lines)
		}
		if _, hot := w.hot.get("q=a"); !hot {
			t.Error("not hot")
		}
		// carbon dies: old points stay, and no new ones come.
		for range 20 {
			w.tick()
		}
		w.polled()
		if s := w.source.Stats(); !s.Frozen || w.log.count("reason=silent", "newer point") != 1 {
			t.Errorf("stopped: %+v, logged %q", s, w.log.lines)
		}
		if _, hot := w.hot.get("q=a"); !hot {
			t.Error("it cooled though nothing is known of it")
		}
	})
}
