package blame

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestScenarios simulates causes that a judge has to find, and slowness without a cause among the keys.
// In all scenarios something happens after 15 s. Culprits end 20 s later.
const (
	start = 15.0
	stop  = 35.0
)

func base(o options) options {
	o.rate, o.cores = 1000, 3
	if o.zipf == 0 {
		o.zipf = 1
	}
	o.length = 48
	return o
}

func pool(o options) options { o.conns = 12; return base(o) }

func one(c culprit) []culprit {
	c.from, c.to = start, stop
	if c.name == "" {
		c.name = "bad"
	}
	return []culprit{c}
}

func several(n int, rate, work float64) (list []culprit) {
	for i := range n {
		list = append(list, culprit{name: fmt.Sprint("bad", i), rate: rate / float64(n), work: work, from: start, to: stop})
	}
	return list
}

func moving(rate, work float64) (list []culprit) {
	for i := range 4 {
		list = append(list, culprit{name: fmt.Sprint("bad", i), rate: rate, work: work, from: start + 5*float64(i), to: start + 5*float64(i+1)})
	}
	return list
}

func from(t, value float64) func(float64) float64 {
	return func(now float64) float64 {
		if now < t {
			return 1
		}
		return value
	}
}

func during(a, b, value float64) func(float64) float64 {
	return func(now float64) float64 {
		if now < a || now >= b {
			return 1
		}
		return value
	}
}

var guilty = map[string]options{
	"scan 1s, pool":       pool(options{culprits: one(culprit{rate: 2, work: 1})}),
	"scan 2s 0.1%, pool":  pool(options{culprits: one(culprit{rate: 1, work: 2})}),
	"scan 300ms, pool":    pool(options{culprits: one(culprit{rate: 6, work: 0.3})}),
	"scan 1s, shared":     base(options{culprits: one(culprit{rate: 2, work: 1})}),
	"known key, pool":     pool(options{culprits: one(culprit{name: "40", rate: 2, work: 1})}),
	"turns cheap, pool":   pool(options{culprits: one(culprit{rate: 2, work: 1, always: true})}),
	"lock, pool":          pool(options{culprits: one(culprit{rate: 5, sleep: 3, work: 0.001})}),
	"flood, shared":       base(options{culprits: one(culprit{name: "90", rate: 1500, flood: true})}),
	"ten, pool":           pool(options{culprits: several(10, 2.5, 1)}),
	"ten of 0.1%, pool":   pool(options{culprits: several(10, 10, 0.3)}),
	"ten, shared":         base(options{culprits: several(10, 2.5, 1)}),
	"moving, pool":        pool(options{culprits: moving(2.5, 1)}),
	"two causes, pool":    pool(options{culprits: append(several(1, 2, 1), culprit{name: "lock", rate: 5, sleep: 3, work: 0.001, from: start + 3, to: stop})}),
	"several routes pool": pool(options{routes: 5, culprits: one(culprit{rate: 2, work: 1})}),
	"flat mix, pool":      pool(options{zipf: 0.4, culprits: one(culprit{rate: 2, work: 1})}),
}

var innocent = map[string]options{
	"quiet, pool":          pool(options{}),
	"database x1.7":        pool(options{slow: from(start, 1.7)}),
	"database x3":          pool(options{slow: from(start, 3)}),
	"database x1.7 shared": base(options{slow: from(start, 1.7)}),
	"database x3 shared":   base(options{slow: from(start, 3)}),
	"database x4 20 s":     pool(options{slow: during(start, start+20, 4)}),
	"database creeps": pool(options{slow: func(now float64) float64 {
		return 1 + 2*min(1, max(0, now-start)/20)
	}}),
	"hiccups": pool(options{slow: func(now float64) float64 {
		if now > start && math.Mod(now, 5) < 0.7 {
			return 20
		}
		return 1
	}}),
	"network": pool(options{network: func(w *world, _ int) float64 {
		if w.now > start {
			return 0.004 * w.rand.ExpFloat64()
		}
		return 0
	}}),
	"slow clients": pool(options{client: func(w *world, _ int) float64 {
		if w.now > start && w.rand.IntN(5) == 0 {
			return 0.05 * w.rand.ExpFloat64()
		}
		return 0
	}}),
	"GC pauses": pool(options{paused: func(now float64, in int) float64 {
		if now < start {
			return 0
		}
		if at := math.Mod(now+float64(in)*0.7, 3); at < 0.25 {
			return now + 0.25 - at
		}
		return 0
	}}),
	"long pauses": pool(options{paused: func(now float64, in int) float64 {
		if at := math.Mod(now+float64(in)*0.1, 15); now > start && at < 1 {
			return now + 1 - at
		}
		return 0
	}}),
	"slower release": base(options{slow: from(start, 1.8)}),
	"cold start": pool(options{slow: func(now float64) float64 {
		return 1 + 6*math.Exp(-now/8)
	}}),
	"bad disk": pool(options{network: func(w *world, in int) float64 {
		if w.now > start && in == 2 {
			return 0.03 * w.rand.ExpFloat64()
		}
		return 0
	}}),
	"traffic doubles": pool(options{traffic: from(start, 2)}),
	"traffic x1.7":    base(options{traffic: from(start, 1.7)}),
	"mix shifts":      pool(options{shift: start}),
	"mix shifts, 5":   pool(options{shift: start, routes: 5, slow: from(start, 1.5)}),
}

// everyTime are the scenarios of ordinary tests, with one seed. HOTPARAM_BLAME=100 runs all
// scenarios with a hundred seeds each.
var everyTime = []string{
	"scan 1s, pool", "turns cheap, pool", "ten, shared", "lock, pool", "flood, shared",
	"database x1.7", "GC pauses", "bad disk", "hiccups", "mix shifts", "cold start",
}

func runs() int {
	n, _ := strconv.Atoi(os.Getenv("HOTPARAM_BLAME"))
	return max(1, n)
}

func names(m map[string]options) (list []string) {
	for name := range m {
		if os.Getenv("HOTPARAM_BLAME") != "" || slices.Contains(everyTime, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func TestScenarios(t *testing.T) {
	for _, name := range names(guilty) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runGuilty(t, guilty[name])
		})
	}
	for _, name := range names(innocent) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runInnocent(t, innocent[name])
		})
	}
}

func runGuilty(t *testing.T, o options) {
	var found, released, ratios, slow []float64
	missed, wrong, tried, refused, late, flaps := 0, 0, 0, 0, 0, 0
	for seed := range uint64(runs()) {
		w := newWorld(seed, o)
		w.run()
		calm := o
		calm.culprits = nil
		c := newWorld(seed, calm)
		c.run()
		last, first := 0.0, math.Inf(1)
		for _, k := range w.keys {
			if g := k.guilt; g != nil {
				at, ok := w.found[k]
				if !ok {
					missed++
					continue
				}
				if len(o.culprits) == 1 || strings.HasPrefix(t.Name(), "TestScenarios/moving") || g.name == "lock" {
					found = append(found, at-max(g.from, w.slowAt))
				}
				last, first = max(last, at), min(first, at)
			}
		}
		if len(o.culprits) > 1 && last > 0 {
			found = append(found, first-w.slowAt)
		}
		for k := range w.tried {
			if k.guilt == nil {
				tried++
				if w.kept[k] {
					wrong++
				}
			}
		}
		slow = append(slow, w.slowFor)
		refused += w.refused
		flaps += w.flaps
		if len(w.judge.Held()) > 0 {
			late++
		}
		released = append(released, w.released-stop)
		if from := start + 10.0; from < stop {
			ratios = append(ratios, w.p99(from, stop)/c.p99(from, stop))
		}
	}
	t.Logf("%s: missed %d, found after %s s, p99 ratio %s, slow for %s s, released after %s s, still held %d, innocent tried %d kept %d refused %d, again %d",
		t.Name()[len("TestScenarios/"):], missed, quantiles(found), quantiles(ratios), quantiles(slow), quantiles(released), late, tried, wrong, refused, flaps)
	if missed > len(o.culprits)*runs()/4 || wrong > (runs()+5)/10 || late > (runs()+5)/10 {
		t.Errorf("missed %d, kept %d wrong keys, still held %d", missed, wrong, late)
	}
}

func runInnocent(t *testing.T, o options) {
	blamed, trials, tried, refused := 0, 0, 0, 0
	for seed := range uint64(runs()) {
		w := newWorld(seed, o)
		w.run()
		if len(w.kept) > 0 {
			blamed++
		}
		trials += w.trials
		tried += len(w.tried)
		refused += w.refused
	}
	t.Logf("%s: blamed runs %d, trials %d of %d keys, refused %d", t.Name()[len("TestScenarios/"):], blamed, trials, tried, refused)
	if blamed > (runs()+10)/20 || trials > 2*runs() {
		t.Errorf("blamed in %d runs, %d trials", blamed, trials)
	}
}

func quantiles(list []float64) string {
	if len(list) == 0 {
		return "-"
	}
	slices.Sort(list)
	at := func(q float64) float64 { return list[min(len(list)-1, int(q*float64(len(list))))] }
	return fmt.Sprintf("%.2f/%.2f/%.2f", at(0.5), at(0.9), list[len(list)-1])
}
