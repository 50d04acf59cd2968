package graphitesource

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A key is hot with the poll after the flush that brings it over the threshold, and cools when
// its window is below the exit. While it is hot its counts are right, even if none of its points
// passes the filter any longer.
func TestHotAndCool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second)) // exit 80: above 7
		w.start()
		for range 3 {
			w.flush(map[string]float64{"q=a": 33, "q=b": 1})
		}
		w.polled()
		if _, hot := w.hot.get("q=a"); hot {
			t.Fatal("hot at 99 in 10 s")
		}
		w.flush(map[string]float64{"q=a": 1})
		w.polled()
		if h, _ := w.hot.get("q=a"); h.Low != 100 || h.High != published.Unknown {
			t.Fatalf("at 100 in the first 4 s it is %d to %d", h.Low, h.High)
		}
		for range 6 {
			w.flush(map[string]float64{"q=a": 7})
		}
		w.polled()
		if h, _ := w.hot.get("q=a"); h.Low != 142 || h.High != 142 {
			t.Fatalf("at 142 in 10 s it is %d to %d", h.Low, h.High)
		}
		w.flush(map[string]float64{"q=a": 7})
		w.flush(map[string]float64{"q=a": 4}) // 66+1+49+4
		w.flush(map[string]float64{"q=a": 1})
		w.flush(nil) // until then something of that second may come
		w.polled()
		if h, hot := w.hot.get("q=a"); hot {
			t.Errorf("below 80 in 10 s it is hot with %d", h.Low)
		}
		s := w.source.Stats()
		if s.Counted != 99+1+49+4+1 || s.Detector.Keys != 1 || s.Frozen || s.Behind > time.Second {
			t.Errorf("stats %+v; the key below the filter is not to be counted", s)
		}
	})
}

// The source returns StatsD's counts exactly, whichever points are late, and a key is hot exactly
// if its points say so.
func TestMatchesExactCount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		long := rapid.SampledFrom([]int{1, 2, 5, 10, 30}).Draw(rt, "window")
		n := rapid.Int64Range(1, 200).Draw(rt, "threshold")
		seconds := rapid.IntRange(5, 45).Draw(rt, "seconds")
		keys := rapid.IntRange(1, 6).Draw(rt, "keys")
		type point struct{ n, late int }
		counts := make([][]point, keys)
		for k := range counts {
			high := rapid.SampledFrom([]int{0, 3, int(n)/long + 1, int(n)}).Draw(rt, "high")
			for range seconds {
				p := point{n: rapid.IntRange(0, high).Draw(rt, "n")}
				if rapid.IntRange(0, 9).Draw(rt, "is late") == 0 {
					p.late = rapid.IntRange(1, 8).Draw(rt, "late")
				}
				counts[k] = append(counts[k], p)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, hotRule("r", n, time.Duration(long)*time.Second))
			w.start()
			first := time.Now().Unix() + 1
			for s := range seconds + 9 { // some for the late ones
				at := w.tick()
				for k := range counts {
					for i, p := range counts[k] {
						if i+p.late == s && p.n > 0 {
							w.graphite.write(w.series(fmt.Sprintf("q=%d", k)), first+int64(i), float64(p.n))
						}
					}
				}
				w.beat(at)
			}
			w.polled()
			for k := range counts {
				text := fmt.Sprintf("q=%d", k)
				sum, most := 0, 0
				for i, p := range counts[k] {
					if sum += p.n; i >= long {
						sum -= counts[k][i-long].n
					}
					most = max(most, sum)
				}
				if _, was := w.hot.entered[text]; was != (most >= int(n)) {
					t.Errorf("%s: hot %v, with %d at most in %d s, threshold %d: %v", text, was, most, long, n, counts[k])
				}
			}
			if s := w.source.Stats(); s.Detector.Late > 0 || s.Shrunk > 0 {
				t.Errorf("stats %+v", s)
			}
		})
	})
}

// If keys are compared, all counts are read, and each is counted once.
func TestConserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := hotRule("r", 1000, 10*time.Second)
		share.Hot[0].Kind, share.Hot[0].Factor = rules.Share, rules.Percent(50)
		w := newWorld(t, nil, share)
		w.start()
		sent := 0.0
		for i := range 60 {
			at := w.flush(map[string]float64{"q=a": float64(i), "q=b": 1})
			sent += float64(i) + 1
			if i == 30 { // became more, later
				w.graphite.write(w.series("q=a"), at-5, float64(i+15))
				sent += 20
				w.graphite.write(w.series("q=a"), at-4, 1)
			}
		}
		w.polled()
		s := w.source.Stats()
		if float64(s.Counted) != sent || s.Revised != 1 || s.Shrunk != 1 || s.MissedSeconds != 0 {
			t.Errorf("of %v counted %d; stats %+v", sent, s.Counted, s)
		}
	})
}

// Sampled counts are fractions, and their sums are exact.
func TestFractionsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 100, 30*time.Second))
		w.start()
		for range 30 {
			w.flush(map[string]float64{"q=a": 10.0 / 3})
		}
		w.polled()
		if h, hot := w.hot.get("q=a"); !hot || h.Low != 100 {
			t.Errorf("30 × 10/3 are %d", h.Low)
		}
	})
}

// Series that other programs spell differently are one key, and each of them is requested while
// the key is hot.
func TestOtherSpellings(t *testing.T) {
	for _, believe := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Canonical = believe }, hotRule("r", 100, 10*time.Second)) // exit 80: above 7
			w.start()
			const key, other = "GET /s?a=1&b=2", "GET /s?b=2&a=1"
			for range 10 {
				w.flush(map[string]float64{key: 8, other: 8})
			}
			w.polled()
			h, hot := w.hot.get(key)
			_, another := w.hot.get(other)
			if s := w.source.Stats(); hot == believe || another || !believe && (h.Low != 160 || s.Uncanonical != 1) || believe && s.Uncanonical != 0 {
				t.Fatalf("believe: %v: hot: %v, %d, the other: %v, stats %+v", believe, hot, h.Low, another, s)
			}
			if believe {
				return
			}
			for range 40 { // below the filter, and nothing that is above it is read again
				w.flush(map[string]float64{key: 7, other: 7})
			}
			w.polled()
			if h, _ := w.hot.get(key); h.Low != 140 || h.High != 140 {
				t.Errorf("at 70 twice in 10 s it is %d to %d", h.Low, h.High)
			}
		})
	}
}

// Series can hold counts per second, and names without legacyNamespace.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) {
			c.Series, c.Rate, c.Step, c.Every = "stats.counters.{name}.rate", true, 10*time.Second, "*/10 * * * * *"
		}, hotRule("r", 100, 20*time.Second))
		w.graphite.step = 10
		w.start()
		for range 2 {
			w.flush(map[string]float64{"q=a": 5})
		}
		w.polled()
		if h, hot := w.hot.get("q=a"); !hot || h.Low != 100 {
			t.Errorf("2 × 5/s × 10 s are %d; %+v", h.Low, w.source.Stats())
		}
		if got, want := w.graphite.asked(), []string{"stats.statsd.numStats", "maximumAbove(stats.counters.shop.r.hot_param.*.rate,3.9)"}; !slices.Equal(got, want) {
			t.Errorf("asked for %q, want %q", got, want)
		}
	})
}

// Without a heartbeat the clock decides which points are complete: ours, if Graphite does not
// send its own.
func TestNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Heartbeat = NoHeartbeat }, hotRule("r", 100, 10*time.Second))
		w.graphite.breakBy(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Del("Date")
			return false
		})
		w.start()
		for range 20 {
			at := w.tick()
			w.graphite.write(w.series("q=a"), at, 10)
		}
		w.polled()
		s := w.source.Stats()
		if h, hot := w.hot.get("q=a"); !hot || h.Low != 100 || s.Counted != 180 || s.MissedSeconds != 0 || s.Frozen {
			t.Errorf("%d, %+v", h.Low, s)
		}
	})
}

// A source that starts, or recovers from an outage, reads the past that it needs to know the hot
// keys.
func TestStartsWithThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jump := hotRule("j", 50, 10*time.Second)
		jump.Hot[0].Kind, jump.Hot[0].Factor = rules.Jump, rules.Percent(300)
		w := newWorld(t, nil, jump)
		for range 110 {
			w.flush(map[string]float64{"q=a": 10, "q=new": 2})
		}
		for range 9 {
			w.flush(map[string]float64{"q=a": 10, "q=new": 7})
		}
		w.start()
		w.flush(map[string]float64{"q=a": 10, "q=new": 7})
		w.polled()
		if _, hot := w.hot.get("q=new"); !hot {
			t.Error("a key that jumped from 20 to 70 is not hot")
		}
		if _, hot := w.hot.get("q=a"); hot {
			t.Error("a key that stays at 100 is hot")
		}
		if s := w.source.Stats(); s.Counted != 120*10+110*2+10*7 || s.Detector.Late != 0 {
			t.Errorf("counted %d of the past, %d too late", s.Counted, s.Detector.Late)
		}
	})
}
