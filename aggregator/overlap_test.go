//go:build real && !race

package aggregator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	reference "github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// watchOverlap pairs a detector of overlapping keys with the reference that its lists are checked
// against.
type watchOverlap struct {
	*overlapping
	truth  *reference.Overlap
	window rules.Window
	first  int64
}

func newWatchOverlap(each bool, n int64, hold, coolDown time.Duration) *watchOverlap {
	kind := rules.ByCombinations
	if each {
		kind = rules.ByEach
	}
	o := &overlapping{combined: &combined{out: newRecorder(), now: noon}, each: each}
	rule := hotRule("r", n, time.Second)
	rule.By.Kind = kind
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = hold, coolDown
	o.Detector = NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: o.out})
	o.Advance(o.now)
	w := rule.Hot[0].Window()
	return &watchOverlap{o, &reference.Overlap{N: n, Panes: int64(w.Panes), Each: each}, w, w.Index(o.now) + 1}
}

// requests counts n requests by the keys that the reference derives from them.
func (w *watchOverlap) requests(n int64, params ...string) {
	slices.Sort(params)
	w.truth.Add(w.window.Index(w.now), n, params...)
	w.count("*", n)
	w.countKeys(n, w.truth.Keys(params)...)
}

// endPane ends a pane and returns the errors in the list after it.
func (w *watchOverlap) endPane() []string {
	last := w.window.Index(w.now)
	w.pass(base.FlushInterval)
	listed := make(map[string]reference.Listing)
	for key, h := range w.out.hot() {
		listed[strings.TrimPrefix(key.Text, "GET /s?")] = reference.Listing{Usual: h.Usual, Spared: h.Spared}
	}
	return w.truth.Check(last, w.first, listed)
}

// For any requests, unusual keys are limited, usual and explained ones are not, and every claim
// agrees with the requests themselves.
func TestOverlappingKeysAgreeWithTheRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 10
		w := newWatchOverlap(rapid.Bool().Draw(t, "each"), n, time.Second, 500*time.Millisecond)
		type stream struct {
			n      int64 // requests in a pane
			params []string
			tail   string // a name with a value of its own for each request
		}
		common := rapid.SampledFrom([]string{"", "c=1"}).Draw(t, "common") // of all requests
		drawStream := func(most int64) stream {
			s := stream{n: rapid.Int64Range(0, most).Draw(t, "n")}
			for _, name := range []string{"a", "b", "c"} {
				if name == "c" && common != "" {
					s.params = append(s.params, common)
				} else if v := rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, name); v > 0 {
					s.params = append(s.params, fmt.Sprint(name, "=", v))
				}
			}
			if len(s.params) == 0 {
				s.params = []string{"d=1"}
			}
			s.tail = rapid.SampledFrom([]string{"", "", "t", "b"}).Draw(t, "tail")
			// If two keys have more than three parameters together, there is no key of both.
			for k := range min(3-len(s.params), rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "again")) {
				s.params = append(s.params, fmt.Sprint("a=", 3+k)) // "a" is repeated
			}
			if s.tail != "" {
				s.params = slices.DeleteFunc(s.params, func(p string) bool { return strings.HasPrefix(p, s.tail+"=") })
			}
			return s
		}
		usual := []stream{drawStream(10), drawStream(10)}
		value := 0
		for range rapid.IntRange(2, 5).Draw(t, "phases") {
			streams := usual
			if rapid.Bool().Draw(t, "something") {
				streams = append(slices.Clip(usual), drawStream(30), drawStream(10))
			}
			for range rapid.SampledFrom([]int{5, 20, 40, 150}).Draw(t, "panes") {
				for _, s := range streams {
					params := slices.Clone(s.params)
					if s.tail == "" {
						w.requests(s.n, params...)
						continue
					}
					for left := s.n; left > 0; left -= 2 {
						value++
						w.requests(min(left, 2), append(slices.Clone(params), fmt.Sprint(s.tail, "=v", value))...)
					}
				}
				if wrong := w.endPane(); len(wrong) > 0 {
					t.Fatalf("at %v, listed: %s\n%s", w.now.Sub(noon), w.listing(), strings.Join(wrong, "\n"))
				}
			}
		}
	})
}

// The same holds for the parameters of real requests, whatever their route.
func TestOverlappingKeysOfTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, c := range []struct {
		trace string
		n     int64
	}{
		{"semicomplete-apache_logs.log.zst", 2},
		{"scan-acunetix.log.zst", 5},
		{"ruetoj-2017-11_12.csv.zst", 3},
		{"edgar-2017-06-30.access.log.zst", 10},
		{"dns-2018-03-24.access.jsonl.zst", 10},
	} {
		for _, each := range []bool{true, false} {
			t.Run(fmt.Sprint(c.trace, "/each=", each), func(t *testing.T) {
				checkTraceOverlap(t, testenv.SharedData(t, c.trace), each, c.n)
			})
		}
	}
}

func checkTraceOverlap(t *testing.T, path string, each bool, n int64) {
	w := newWatchOverlap(each, n, 10*time.Second, 5*time.Second)
	requests, hot := 0, 0
	for r, err := range reference.Trace(path) {
		if err != nil {
			t.Fatal(err)
		}
		var params []string
		for _, key := range reference.Keys("each", r.Method, r.Target) {
			if at := strings.LastIndexByte(key, '?'); at >= 0 && len(key)-at < 300 && len(params) < 8 {
				params = append(params, key[at+1:])
			}
		}
		at := time.Unix(0, r.At).UTC()
		if requests == 0 {
			w.now = at.Truncate(base.FlushInterval)
			w.Advance(w.now)
			w.first = w.window.Index(w.now) + 1
		}
		for panes := 0; !at.Before(w.now.Add(base.FlushInterval)); panes++ {
			if panes > 400 { // all requests have left the window
				w.pass(at.Truncate(base.FlushInterval).Sub(w.now))
				break
			}
			if wrong := w.endPane(); len(wrong) > 0 {
				t.Fatalf("at %v, listed: %s\n%s", w.now, w.listing(), strings.Join(wrong, "\n"))
			}
		}
		if len(params) > 0 {
			w.requests(1, params...)
		}
		if requests++; requests == 20_000 {
			break
		}
	}
	for _, change := range w.out.changes {
		hot += len(change.Hot)
	}
	if hot == 0 {
		t.Error("nothing was hot")
	}
}
