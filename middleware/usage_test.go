package middleware

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// costAuto returns a rule of GET /s that finds hot keys by their cost.
func costAuto(t testing.TB, by rules.By) rules.Rule {
	rule := costRule(t, "r", rules.Millis, 1, 1)
	rule.By, rule.Limit = by, &rules.Limit{Mode: rules.ModeLimit, Concurrency: rules.AutoConcurrency}
	rule.Hot = []rules.Threshold{rules.Threshold{Kind: rules.Cost, Rate: rules.CostRate}.WithDefaults()}
	return rule
}

// takeUsage adds the usage since the last call to sums, by kind and text.
func takeUsage(t *testing.T, g *Guard, sums map[string]wire.Usage) {
	t.Helper()
	g.yieldUsage(func(o collector.KeyOrigin) bool {
		u, ok := wire.ParseUsage(o.N, o.Name)
		if !ok || string(o.Rule) != "r" {
			t.Errorf("rule %q: %d %q", o.Rule, o.N, o.Name)
		}
		name := string(o.Kind) + " " + string(o.Text)
		sum := sums[name]
		sum.Add(&u)
		sums[name] = sum
		return true
	})
}

// Whatever ends coincide with the ends of intervals, all time of each request is reported, and in the
// interval in which it passes.
func TestUsageIsWhole(t *testing.T) {
	for seed := range uint64(10) {
		each := seed%2 == 1 // then a request has two keys
		by := byNames("q")
		if each {
			by = rules.By{Kind: rules.ByEach}
		}
		inBubble(t, rules.Rules{Namespace: "test", Rules: []rules.Rule{costAuto(t, by)}}, func(t *testing.T, f *fixture) {
			mux := http.NewServeMux()
			mux.Handle("GET /s", sleeper)
			h := f.Handler(mux)
			random := rand.New(rand.NewPCG(seed, 2))
			want, got := make(map[string]wire.Usage), make(map[string]wire.Usage)
			begin := time.Now()
			var all sync.WaitGroup
			for range 200 {
				q, after := random.IntN(4), time.Duration(random.IntN(20))*chargeEvery/2
				took := time.Duration(1+random.IntN(12)) * chargeEvery / 4
				if random.IntN(2) == 0 {
					took = time.Duration(1+random.Int64N(int64(time.Second/time.Microsecond))) * time.Microsecond
				}
				u := wire.Usage{Busy: took, Took: took, Begun: 1, Ended: 1}
				names := []string{"t GET /s", fmt.Sprintf("u GET /s?q=%d", q)}
				if each {
					names = append(names, fmt.Sprintf("u GET /s?for=%v", took))
				}
				for _, name := range names {
					sum := want[name]
					sum.Add(&u)
					want[name] = sum
				}
				all.Go(func() {
					time.Sleep(after)
					sleep(h, q, took, "")
				})
			}
			for time.Since(begin) < 3*time.Second {
				time.Sleep(chargeEvery)
				before := maps.Clone(got)
				takeUsage(t, f.Guard, got)
				// A request that ends just after the interval is in it, with a little more than its time.
				if busy := got["t GET /s"].Busy - before["t GET /s"].Busy; busy > 200*2*chargeEvery {
					t.Errorf("%v in an interval", busy)
				}
			}
			all.Wait()
			time.Sleep(2 * chargeEvery)
			takeUsage(t, f.Guard, got)
			for name, w := range want {
				if strings.HasPrefix(name, "u GET /s?for") && got[name] == (wire.Usage{}) {
					continue // one of too many keys
				}
				if g := got[name]; g != w && !(strings.HasPrefix(name, "u GET /s?for") && g.Busy <= w.Busy) {
					t.Errorf("seed %d: %s: %+v, want %+v", seed, name, g, w)
				}
			}
			if f.Stats().Panics != 0 {
				t.Error("a panic")
			}
		})
	}
}

// A request that hangs is reported in its first interval, and in each after it.
func TestUsageOfHanging(t *testing.T) {
	inBubble(t, rules.Rules{Namespace: "test", Rules: []rules.Rule{costAuto(t, byNames("q"))}}, func(t *testing.T, f *fixture) {
		mux := http.NewServeMux()
		mux.Handle("GET /s", sleeper)
		h := f.Handler(mux)
		var all sync.WaitGroup
		all.Go(func() { sleep(h, 1, 3*time.Second, "") })
		for i := range 20 {
			time.Sleep(chargeEvery)
			synctest.Wait()
			got := make(map[string]wire.Usage)
			takeUsage(t, f.Guard, got)
			want := wire.Usage{Busy: chargeEvery}
			if i == 0 {
				want.Begun = 1
			}
			if u := got["u GET /s?q=1"]; u != want {
				t.Errorf("interval %d: %+v, want %+v", i, u, want)
			}
		}
		all.Wait()
	})
}

// The refused requests of a held key are reported although none runs.
func TestUsageOfRefused(t *testing.T) {
	inBubble(t, rules.Rules{Namespace: "test", Rules: []rules.Rule{costAuto(t, byNames("q"))}}, func(t *testing.T, f *fixture) {
		key := rules.Key{Rule: "r", Text: "GET /s?q=1"}
		replaceHot(f.hot, "a:1", []published.Hot{{Key: key, Mode: rules.ModeLimit, Hold: &published.Hold{Pool: "r", Stage: published.HoldKept}}})
		f.stateOf(key).refused.Add(7)
		for _, want := range []int64{7, 0} {
			got := make(map[string]wire.Usage)
			takeUsage(t, f.Guard, got)
			if u := got["u GET /s?q=1"]; u != (wire.Usage{Refused: want}) {
				t.Errorf("%+v, want %d refused", u, want)
			}
		}
	})
}

// Of many keys the busiest are sent, and those whose requests take longest beside the others'.
func TestUsageOfMost(t *testing.T) {
	m := usageMeter{}
	add := func(q string, n int64, each time.Duration) {
		u := wire.Usage{Busy: time.Duration(n) * each, Took: time.Duration(n) * each, Begun: n, Ended: n}
		m.add([]byte("r GET /s?q="+q), &u, false)
	}
	for i := range 1000 {
		add(fmt.Sprint(i), 1+int64(i%200), 10*time.Millisecond)
	}
	for i := range 30 {
		add(fmt.Sprint("slow", i), 1, 900*time.Millisecond)
	}
	inBubble(t, rules.Rules{Namespace: "test", Rules: []rules.Rule{costAuto(t, byNames("q"))}}, func(t *testing.T, f *fixture) {
		f.running.usage.keys, f.running.usage.routes = m.keys, m.routes
		got := make(map[string]wire.Usage)
		takeUsage(t, f.Guard, got)
		if len(got) != 1+maxBusyKeys+maxSlowKeys {
			t.Errorf("%d lines", len(got))
		}
		for i := range 30 {
			if got[fmt.Sprint("u GET /s?q=slow", i)].Ended != 1 {
				t.Errorf("slow%d is not sent", i)
			}
		}
		if got["u GET /s?q=199"].Ended != 200 {
			t.Error("the busiest is not sent")
		}
	})
}

// The time for which a handler waits for its client is not in the usage: for a slow body, for a slow
// reader, or for an upgrade or a stream, which are not measured at all.
func TestUsageWithoutClients(t *testing.T) {
	t.Parallel()
	const pause = 50 * time.Millisecond
	rule := costAuto(t, byNames("q"))
	rule.Match.Route, _ = rules.ParseRoute("/s")
	f := newFixture(t, rules.Rules{Namespace: "test", Rules: []rules.Rule{rule}})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /s", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
	})
	written := make(chan struct{})
	mux.HandleFunc("GET /s", func(w http.ResponseWriter, r *http.Request) {
		defer close(written)
		if r.URL.Query().Get("q") == "file" {
			http.ServeFile(w, r, filepath.Join(r.URL.Query().Get("dir"), "file"))
			return
		}
		for range 100 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				t.Error(err)
			}
		}
	})
	s := httptest.NewServer(f.Handler(mux))
	defer s.Close()
	check := func(name, key string) {
		t.Helper()
		time.Sleep(2 * chargeEvery)
		got := make(map[string]wire.Usage)
		takeUsage(t, f.Guard, got)
		u := got["u "+key]
		if u.Ended != 1 || u.Took > 8*pause || u.Busy > 8*pause {
			t.Errorf("%s: %+v of some 20 × %v", name, u, pause)
		}
	}
	body, send := io.Pipe()
	go func() {
		for range 20 {
			time.Sleep(pause)
			_, _ = send.Write([]byte("x"))
		}
		_ = send.Close()
	}()
	if resp, err := http.Post(s.URL+"/s?q=body", "", body); err != nil {
		t.Fatal(err)
	} else {
		_ = resp.Body.Close()
	}
	check("a slow body", "POST /s?q=body")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 100<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"q=slow", "q=file&dir=" + dir} {
		written = make(chan struct{})
		resp, err := http.Get(s.URL + "/s?" + query)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(pause)
			if _, err := io.CopyN(io.Discard, resp.Body, 4<<20); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		<-written
		check("a slow reader, "+query[:6], "GET /s?"+query[:6])
	}
	for name, value := range map[string]string{"Upgrade": "websocket", "Accept": "text/event-stream"} {
		r := httptest.NewRequest("GET", "/s?q=long", nil)
		r.Header.Set(name, value)
		written = make(chan struct{})
		f.Handler(mux).ServeHTTP(httptest.NewRecorder(), r)
		got := make(map[string]wire.Usage)
		if takeUsage(t, f.Guard, got); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Routes and keys beyond the bounds find no room, and are counted.
func TestUsageIsBounded(t *testing.T) {
	inBubble(t, rules.Rules{Namespace: "test", Rules: []rules.Rule{costAuto(t, byNames("q"))}}, func(t *testing.T, f *fixture) {
		m, u := &f.running.usage, wire.Usage{Begun: 1}
		for i := range maxUsedKeys + 5 {
			m.add(fmt.Appendf(nil, "r GET /%d?q=1", i), &u, false)
		}
		for i := range 7 {
			m.add(fmt.Appendf(nil, "r GET /1?q=new%d", i), &u, false)
		}
		if len(m.routes) != maxUsedKeys || len(m.keys) != maxUsedKeys || m.routes["r GET /1"].Begun != 8 {
			t.Errorf("%d routes, %d keys, %+v", len(m.routes), len(m.keys), m.routes["r GET /1"])
		}
		for range 2 {
			takeUsage(t, f.Guard, make(map[string]wire.Usage))
			if n := f.Stats().Unmeasured; n != 5+7 {
				t.Errorf("%d unmeasured, want 12", n)
			}
		}
	})
}
