package graphitesource

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// During each fault nothing is published, one line is logged, and the fault is counted by its
// reason. Afterwards all counts of the outage arrive.
func TestFaults(t *testing.T) {
	say := func(status int, body string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	points := func(n, step int) string {
		return `[{"target": "stats_counts.shop.r.hot_param.q=new", "datapoints": [` + strings.Repeat("[1000, 946684810], ", n-1) + "[1000, 946684810]]}]"
	}
	huge := func() string {
		var b strings.Builder
		b.WriteString(`[{"target": "stats_counts.shop.r.hot_param.q=new", "datapoints": [`)
		for i := range 10_000 {
			fmt.Fprintf(&b, "[1000, %d], ", 946684810+i)
		}
		return b.String() + `[1, 946694810]]}]`
	}()
	for _, test := range []struct {
		name, reason string
		fault        func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"late", "timeout", func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }},
		{"connection reset", "connect", func(http.ResponseWriter, *http.Request) bool { panic(fmt.Errorf("connection reset")) }},
		{"500", "status", say(500, "error")},
		{"404", "status", say(404, "not here")},
		{"302", "status", say(302, "")},
		{"401", "auth", say(401, "")},
		{"403", "auth", say(403, "")},
		{"HTML", "malformed", say(200, "<html>")},
		{"no list", "malformed", say(200, `{"error": "x"}`)},
		{"half an answer", "malformed", say(200, points(1, 1)[:60])},
		{"two answers", "malformed", say(200, "[][]")},
		{"nothing", "malformed", say(200, "")},
		{"points of one time", "step", say(200, points(3, 1))},
		{"points of the future", "malformed", say(200, `[{"target": "statsd.numStats", "datapoints": [[1, 4000000000]]}]`)},
		{"huge series", "too_large", say(200, huge)},
		{"no series", "silent", say(200, "[]")},
		{"series of nothing", "silent", say(200, `[{"target": "statsd.numStats", "datapoints": []}]`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Every count is read, as the rule also has a share.
				rule := hotRule("r", 100, 10*time.Second)
				share := rule.Hot[0]
				share.Kind, share.Factor = rules.Share, rules.Percent(100)
				rule.Hot = append(rule.Hot, share)
				w := newWorld(t, nil, rule)
				w.start()
				sent := int64(0)
				for range 12 {
					w.flush(map[string]float64{"q=hot": 20})
					sent += 20
				}
				w.polled()
				before := w.hot.changed()
				w.graphite.breakBy(test.fault)
				for range 40 { // nothing of q=hot, and another is hot
					w.flush(map[string]float64{"q=other": 30})
					sent += 30
				}
				w.polled()
				if _, hot := w.hot.get("q=hot"); !hot || w.hot.changed() != before {
					t.Error("something was published")
				}
				s := w.source.Stats()
				if s.Failures[test.reason] == 0 || !s.Frozen || s.Why == "" || s.Behind < 39*time.Second {
					t.Errorf("stats %+v, want failures by %s", s, test.reason)
				}
				if test.reason != "silent" && s.Polls > 12+retries+10 {
					t.Errorf("asked %d times in 52 s", s.Polls)
				}
				if w.log.count() != 1 || w.log.count("level=WARN", `msg="Graphite`, "reason="+test.reason) != 1 {
					t.Errorf("logged %q", w.log.lines)
				}
				w.graphite.breakBy(nil)
				for range 30 { // the longest pause, and a request that began before
					w.flush(nil)
				}
				w.polled()
				s = w.source.Stats()
				if s.Frozen || s.Why != "" || s.Counted != sent || s.MissedSeconds != 0 {
					t.Errorf("of %d counted %d afterwards: %+v", sent, s.Counted, s)
				}
				if _, was := w.hot.entered["q=other"]; !was {
					t.Error("what was hot meanwhile was not found")
				}
				if w.log.count() != 2 || w.log.count("level=INFO", `msg="Graphite`) != 1 {
					t.Errorf("logged %q", w.log.lines)
				}
			})
		})
	}
}

// A brief internal error, as when carbon creates a file, is no outage.
func TestPassingError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second))
		var requests atomic.Int64
		w.graphite.breakBy(func(w http.ResponseWriter, _ *http.Request) bool {
			if requests.Add(1)%3 != 0 {
				w.WriteHeader(500)
				return true
			}
			return false
		})
		w.start()
		for range 10 {
			w.flush(map[string]float64{"q=a": 10})
		}
		time.Sleep(DefaultOffset + retries*retryAfter + 100*time.Millisecond)
		s := w.source.Stats()
		if _, hot := w.hot.get("q=a"); !hot || s.Counted != 100 || s.Failures["status"] != 2*requests.Load()/3 || w.log.count() != 0 {
			t.Errorf("stats %+v, logged %q", s, w.log.lines)
		}
	})
}

// If the missed points are too many for one request, the latest are read, and the others are
// counted as missed.
func TestTooMuchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second)) // keeps 20 points
		w.start()
		w.flush(nil)
		w.polled()
		w.graphite.breakBy(func(rw http.ResponseWriter, r *http.Request) bool {
			from, _ := strconv.ParseInt(r.PostForm.Get("from"), 10, 64)
			if from > 0 && from < time.Now().Unix()-60 {
				<-r.Context().Done() // too much
				return true
			}
			return false
		})
		w.source.busy.Lock() // no polls in this time
		for range 99 {
			w.flush(map[string]float64{"q=a": 10})
		}
		w.source.busy.Unlock()
		for range 31 { // it is tried twice
			w.flush(map[string]float64{"q=a": 10})
		}
		w.polled()
		s := w.source.Stats()
		if s.MissedSeconds == 0 || s.MissedSeconds+s.Counted/10 != 130 || s.Skipped == 0 {
			t.Errorf("stats %+v", s)
		}
		if h, hot := w.hot.get("q=a"); !hot || h.Low != 100 {
			t.Errorf("%d", h.Low)
		}
	})
}

// Seconds in which StatsD wrote nothing are unknown: no share can be computed.
func TestMissedFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second))
		w.start()
		for range 3 {
			w.flush(map[string]float64{"q=a": 50})
		}
		w.tick()
		w.flush(map[string]float64{"q=a": 50})
		w.polled()
		if h, _ := w.hot.get("q=a"); h.Low != 200 || h.High != published.Unknown {
			t.Errorf("%d to %d", h.Low, h.High)
		}
		if s := w.source.Stats(); s.MissedSeconds != 1 {
			t.Errorf("%d seconds missed", s.MissedSeconds)
		}
	})
}

// The time is Graphite's, even if it is wrong. A clock that is set back by much resets the
// source.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second))
		run := func(seconds int) {
			for range seconds {
				at := w.tick() + int64(w.graphite.ahead/time.Second)
				w.graphite.write(w.series("q=a"), at, 20)
				w.beat(at)
			}
			w.polled()
		}
		w.graphite.ahead = time.Hour
		w.start()
		run(20)
		if s := w.source.Stats(); s.Counted != 400 || s.Behind > 2*time.Second || s.Frozen {
			t.Errorf("an hour ahead: %+v", s)
		}
		if w.log.count("level=WARN", "ahead=1h0m0s") != 1 || w.log.count() != 1 {
			t.Errorf("logged %q", w.log.lines)
		}
		w.graphite.mu.Lock()
		w.graphite.ahead = -time.Hour
		w.graphite.mu.Unlock()
		run(20)
		s := w.source.Stats()
		if h, hot := w.hot.get("q=a"); s.Counted < 780 || s.Counted > 800 || s.Frozen || !hot || h.Low != 200 {
			t.Errorf("set back: %d, %+v", h.Low, s)
		}
		if w.log.count("set back") != 1 {
			t.Errorf("logged %q", w.log.lines)
		}
	})
}

// A hot key stays hot when the clock is set, and cools when its own windows say so. It does not
// stay until the clock is where it was when the key became hot.
func TestClocksDropNoKey(t *testing.T) {
	for _, by := range []time.Duration{-2 * time.Minute, -time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			rule := hotRule("r", 100, 10*time.Second)
			rule.Hot[0].Hold = 5 * time.Second
			w := newWorld(t, nil, rule)
			run := func(seconds int, n float64) {
				for range seconds {
					at := w.tick() + int64(w.graphite.ahead/time.Second)
					w.graphite.write(w.series("q=a"), at, n)
					w.beat(at)
				}
				w.polled()
			}
			w.start()
			run(20, 20)
			w.graphite.mu.Lock()
			w.graphite.ahead = by
			w.graphite.mu.Unlock()
			run(20, 9) // hot keys stay so
			if h, hot := w.hot.get("q=a"); !hot || w.hot.cooled > 0 || h.Low != 90 || h.High != 90 {
				t.Errorf("clock set by %v: hot %v with %d to %d, cooled %d times, want hot all the time with 90", by, hot, h.Low, h.High, w.hot.cooled)
			}
			run(15, 0)
			if _, hot := w.hot.get("q=a"); hot {
				t.Errorf("clock set by %v: hot 15 s after its end", by)
			}
		})
	}
}
