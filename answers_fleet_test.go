package hotparam

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/sharing"
	"github.com/hotparam/hotparam/rules"
)

// handlerTime is the time that the handler of a crowd takes.
const handlerTime = 20 * time.Millisecond

// crowdFleet is a fleet of instances in virtual time, with one handler.
type crowdFleet struct {
	handlers []http.Handler
	answers  []*sharing.Answers
	calls    atomic.Int64
	running  []sync.Map // by instance: the targets that are with the handler
	together atomic.Int64
}

// nothing is a sink that drops counts.
type nothing struct{ collector.CountsOnly }

func (nothing) Send(_ context.Context, _ collector.Flush, counts []collector.Count) collector.Sent {
	return collector.Sent{Lines: int64(len(counts))}
}
func (nothing) Fit(text []byte) []byte { return text }
func (nothing) Close() error           { return nil }

func newCrowdFleet(t *testing.T, instances int, onHot string) *crowdFleet {
	t.Helper()
	file, err := config.Parse("hotparam.yaml", []byte(shop("redis://localhost", "localhost:8125", fmt.Sprintf(onHotRule, 600, onHot))))
	if err != nil {
		t.Fatal(err)
	}
	f := &crowdFleet{running: make([]sync.Map, instances)}
	for i := range instances {
		counts, err := collector.New(collector.Config{Sink: nothing{}, Rules: file.Rules})
		if err != nil {
			t.Fatal(err)
		}
		kept := sharing.New(slog.New(slog.DiscardHandler))
		guard, err := middleware.New(file.Rules, counts, middleware.WithSharer(kept))
		if err != nil {
			t.Fatal(err)
		}
		kept.Adopt(file.Rules)
		guard.HotSet().Update("1", published.Change{Hot: []published.Hot{{Key: rules.Key{Rule: "items", Text: item7}, Until: time.Now().Add(time.Hour)}}})
		mux := http.NewServeMux()
		mux.HandleFunc("GET /items/{id}", func(w http.ResponseWriter, r *http.Request) {
			if _, runs := f.running[i].LoadOrStore(r.URL.String(), true); runs {
				f.together.Add(1)
			}
			defer f.running[i].Delete(r.URL.String())
			f.calls.Add(1)
			time.Sleep(handlerTime)
			fmt.Fprint(w, r.URL)
		})
		f.handlers, f.answers = append(f.handlers, guard.Handler(mux)), append(f.answers, kept)
	}
	return f
}

// crowd sends so many requests a second for a time, each to the next instance and for one of the
// targets in turn. It returns how long those that were answered took, and how many were refused.
func (f *crowdFleet) crowd(t *testing.T, perSecond int, length time.Duration, targets int) (times []time.Duration, refused int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	n := int(length.Seconds() * float64(perSecond))
	for i := range n {
		time.Sleep(length / time.Duration(n))
		all.Go(func() {
			start, target := time.Now(), fmt.Sprintf("/items/7?page=%d", i/len(f.handlers)%targets)
			w := httptest.NewRecorder()
			f.handlers[i%len(f.handlers)].ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case w.Code == http.StatusTooManyRequests:
				refused++
			case w.Code != http.StatusOK || w.Body.String() != target:
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			default:
				times = append(times, time.Since(start))
			}
		})
	}
	all.Wait()
	slices.Sort(times)
	return times, refused
}

func (f *crowdFleet) close(t *testing.T) {
	for _, a := range f.answers {
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A crowd of twenty times the limit on twenty instances costs the handler one call for each target,
// instance and cache time, and one for each refresh. Nobody waits longer than for an idle handler.
func TestCrowdFromMemory(t *testing.T) {
	const instances, length, cache = 20, 4 * time.Second, 500 * time.Millisecond
	for _, targets := range []int{3, 1}[:testenv.Cases(2, 1)] {
		for _, stale := range []string{"", ", stale: 2s"} {
			synctest.Test(t, func(t *testing.T) {
				f := newCrowdFleet(t, instances, "cache: 500ms"+stale)
				times, refused := f.crowd(t, 20*200, length, targets)
				f.close(t)
				var refreshes int64
				for _, a := range f.answers {
					refreshes += a.Stats()["items"].Refreshes
				}
				periods := int64(length/cache) + 1
				if calls, most := f.calls.Load()-refreshes, int64(targets*instances)*periods; calls > most || stale != "" && calls > int64(targets*instances) || refreshes > int64(targets*instances)*periods {
					t.Errorf("%d targets%s: %d calls and %d refreshes, want %d", targets, stale, calls, refreshes, most)
				}
				if refused > 0 {
					t.Errorf("%d targets%s: %d refused", targets, stale, refused)
				}
				if slowest := times[len(times)-1]; slowest > handlerTime+5*time.Millisecond {
					t.Errorf("%d targets%s: the slowest took %v", targets, stale, slowest)
				}
				t.Logf("%d targets%s: %d answered, %d calls of the handler, %d refreshes; the slowest took %v", targets, stale, len(times), f.calls.Load(), refreshes, times[len(times)-1])
			})
		}
	}
}

// Without a cache, an instance has one call for each target at a time.
func TestCrowdIsJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCrowdFleet(t, 20, "coalesce: true")
		times, refused := f.crowd(t, 20*200, 5*time.Second, 3)
		f.close(t)
		if f.together.Load() > 0 {
			t.Errorf("%d calls beside another of the same target on the instance", f.together.Load())
		}
		t.Logf("%d answered, %d refused, %d calls of the handler", len(times), refused, f.calls.Load())
		if float64(len(times)) < 1.5*float64(f.calls.Load()) {
			t.Errorf("%d answered by %d calls", len(times), f.calls.Load())
		}
	})
}
