package middleware

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func TestNewRefuses(t *testing.T) {
	good := rules.Rules{Namespace: "test", Rules: []rules.Rule{limitRule(t, "r", "*", byEach, 1, 1)}}
	counts, err := collector.New(collector.Config{Sink: &tallySink{}})
	if err != nil {
		t.Fatal(err)
	}
	bad := good
	bad.Namespace = "no good"
	for name, err := range map[string]error{
		"no rules":       second(New(nil, counts)),
		"hot, uncounted": second(New(&rules.Rules{Namespace: "test", Rules: []rules.Rule{hotRule(t, "r", "*", byEach, 1, 1)}}, nil)),
		"bad client":     second(New(&good, nil, WithClient(rules.Client{TrustUnix: true}))),
		"bad rules":      second(New(&bad, counts)),
		"max keys":       second(New(&good, counts, WithMaxKeys(-1))),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "middleware: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(&good, counts); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// A hot key's bucket stays with it from snapshot to snapshot. When the key cools, its limit ends
// at once.
func TestBucketIsKept(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 1, 4)}})
	f.heat(t, "r GET /s?q=1")
	f.Check(search)
	key, _ := rules.ParseKey("r GET /s?q=1")
	for i := range 20 { // with other counts and other keys each time
		replaceHot(f.hot, fmt.Sprint(i), []published.Hot{
			{Key: key, Low: int64(i), Rate: float64(i)},
			{Key: rules.Key{Rule: "r", Text: fmt.Sprintf("GET /s?q=x%d", i)}},
		})
	}
	if n := tokens(f, search); n != 3 {
		t.Errorf("%d tokens after 20 snapshots, want 3", n)
	}
	hot := f.HotKeys()
	if len(hot) != 2 || hot[0].Key != key || hot[0].Passed != 4 || hot[0].Refused != 1 {
		t.Errorf("hot keys %+v", hot)
	}
	f.HotSet().Update("", published.Change{Cool: []published.Hot{{Key: key}}})
	if n := tokens(f, search); n != 1000 {
		t.Errorf("a key that cooled is refused after %d", n)
	}
}

// A key that flaps finds its old bucket, unless that is full again.
func TestFlapGrantsNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 60, 10)}},
			WithClock(func() time.Duration { return time.Since(start) }))
		passed := 0
		for range 100 { // alternately hot and cool, for a minute in all
			f.heat(t, "r GET /s?q=1")
			passed += min(tokens(f, search), 100)
			f.heat(t)
			time.Sleep(600 * time.Millisecond)
		}
		if passed != 10 { // the next token is earned when the minute is over
			t.Errorf("%d passed, want the burst of 10, once", passed)
		}
		time.Sleep(9 * time.Minute)
		f.heat(t, "r GET /s?q=1")
		if n := tokens(f, search); n != 10 {
			t.Errorf("%d tokens after the time to full, want 10", n)
		}
	})
}

func TestOnSwap(t *testing.T) {
	var versions []string
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 1, 1)}},
		WithOnSwap(func(version string, hot []HotKey) { versions = append(versions, fmt.Sprint(version, len(hot))) }))
	replaceHot(f.hot, "x:", []published.Hot{{Key: rules.Key{Rule: "r", Text: "GET /"}}})
	if len(versions) != 1 || versions[0] != "x:1" {
		t.Errorf("%q", versions)
	}
}

// Whatever panics inside, the request passes and is counted as such, and the next one is decided
// normally.
func TestPanicPasses(t *testing.T) {
	open := rules.Decision{Allowed: true, Reason: rules.ReasonOpen}
	t.Run("clock", func(t *testing.T) {
		broken := true
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{
			limitRule(t, "r", "*", rules.By{}, 1, 2), limitRule(t, "keys", "*", byNames("q"), 1, 2), hotRule(t, "h", "*", byNames("q"), 1, 2),
		}}, WithClock(func() time.Duration {
			if broken {
				panic("no clock")
			}
			return time.Hour
		}))
		f.heat(t, "h GET /s?q=1")
		for range 5 {
			want(t, f.Check(search), open)
			want(t, f.Enter(t.Context(), "x"), open)
		}
		if n := f.Stats().Panics; n != 10 {
			t.Errorf("%d panics were counted, want 10", n)
		}
		broken = false
		if n := tokens(f, search); n != 2 {
			t.Errorf("%d passed afterwards, want 2", n)
		}
	})
	t.Run("payload", func(t *testing.T) {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byNames("q"), 1, 1)}})
		f.heat(t, "r GET /s?q=1")
		f.Guard.hot.All() // the set is in place
		entry := f.hot.Lookup(rules.Hash([]byte("r GET /s?q=1")), []byte("r GET /s?q=1"))
		entry.Payload = nil
		want(t, f.Check(get("", "/s", "q=1")), open)
		if n := f.Stats().Panics; n != 1 {
			t.Errorf("%d panics", n)
		}
	})
	t.Run("sink", func(t *testing.T) { // asked by IsHot
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byNames("q"), 1, 1)}})
		f.sink.fit = func([]byte) []byte { panic("no fit") }
		long := strings.Repeat("x", 200)
		if f.IsHot("GET /s?q=" + long) {
			t.Error("hot")
		}
		want(t, f.Check(get("", "/s", "q="+long)), open)
		if n := f.Stats().Panics; n != 2 {
			t.Errorf("%d panics", n)
		}
	})
}

func TestEnter(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		hotRule(t, "find", "Search/Find", byNames("q"), 1, 2),
		limitRule(t, "any", "*", rules.By{}, 1, 5),
		hotRule(t, "http", "GET /s", byAll, 1, 1),
	}})
	f.heat(t, "find Search/Find?q=a%20b")
	ctx := t.Context()
	find := func() rules.Decision {
		return f.Enter(ctx, "Search/Find",
			rules.Param{Name: "z", Value: "1"}, rules.Param{Name: "q", Value: "a b"}, rules.Param{Source: rules.RPC, Name: "q", Value: "2"})
	}
	want(t, find(), rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 2, Remaining: 1, Rule: "find"})
	find()
	if d := find(); d.Allowed || d.Rule != "find" {
		t.Errorf("%+v", d)
	}
	if got := f.keyCounts(); len(got) != 1 || got["find Search/Find?q=a%20b"] != 3 {
		t.Errorf("counted %v", got)
	}
	for range 3 { // 2 of the 5 are taken
		if d := f.Enter(ctx, "Search/List"); !d.Allowed || d.Rule != "any" {
			t.Errorf("%+v", d)
		}
	}
	if d := f.Enter(ctx, "Search/List"); d.Allowed {
		t.Errorf("%+v", d)
	}

	gone, cancel := context.WithCancel(ctx)
	cancel()
	want(t, f.Enter(gone, "Search/Find", rules.Param{Name: "q", Value: "a b"}), rules.Decision{Allowed: true, Reason: rules.ReasonOpen})
	if got := f.keyCounts(); len(got) != 0 {
		t.Errorf("counted %v for a caller that has gone", got)
	}
}

// A resource and a pattern with the same text are different.
func TestResourceIsNoPattern(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "/s", byAll, 1, 1)}})
	f.Enter(t.Context(), "/s", rules.Param{Name: "q", Value: "1"})
	f.Check(Request{Path: "/s", Query: "q=2", Pattern: "/s"})
	f.Enter(t.Context(), "/s", rules.Param{Name: "q", Value: "3"})
	got := f.keyCounts()
	if got["r /s?q=1"] != 1 || got["r /s?q=3"] != 1 || got["r  /s?q=2"] != 1 || len(got) != 3 {
		t.Errorf("counted %v", got)
	}
}

// IsHot neither counts nor takes tokens.
func TestIsHot(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		limitRule(t, "plain", "GET /s", byNames("q"), 1, 1),
		hotRule(t, "a", "GET /s", byNames("q"), 1, 1),
		hotRule(t, "b", "GET /s", byEach, 1, 1),
	}})
	f.heat(t, "b GET /s?q=1", "plain GET /s?q=2")
	for range 10 {
		if !f.IsHot("GET /s?q=1") {
			t.Error("not hot")
		}
		for _, key := range []string{"GET /s?q=2", "GET /s?q=12", "GET /s?q=", "b GET /s?q=1", "", strings.Repeat("x", 2000)} {
			if f.IsHot(key) {
				t.Errorf("%q is hot", key)
			}
		}
	}
	if d := f.Check(search); !d.Allowed {
		t.Error("a token was taken")
	}
	if got := f.keyCounts(); got["a GET /s?q=1"] != 1 || len(got) != 2 {
		t.Errorf("counted %v", got)
	}
}

// With many goroutines, changing snapshots and flushes, no count is lost, and the hot key gets its
// burst once.
func TestConcurrentChecks(t *testing.T) {
	const workers, each, burst = 8, 3000, 50
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		hotRule(t, "hot", "GET /s", byNames("q"), 1, burst),
		limitRule(t, "keys", "GET /s", byNames("q"), 3600*1000, 1000),
		hotRule(t, "each", "*", byEach, 0, 0),
	}}, WithClock(func() time.Duration { return time.Hour }))
	key, _ := rules.ParseKey("hot GET /s?q=0")
	f.heat(t, key.String())

	var passed atomic.Int64
	var work, others sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for i := range each {
				q := i % 3 // q=0 is hot all along
				d := f.Check(get("GET /s", "/s", fmt.Sprintf("w=%d&q=%d", w, q)))
				if q == 0 && d.Allowed {
					passed.Add(1)
				}
				f.Enter(context.Background(), "job", rules.Param{Name: "w", Value: "x"})
				f.IsHot("GET /s?q=1")
			}
		})
	}
	stop := make(chan struct{})
	others.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			hot := []published.Hot{{Key: key, Low: int64(i)}}
			if i%2 == 0 {
				hot = append(hot, published.Hot{Key: rules.Key{Rule: "each", Text: "GET /s?q=1"}})
			}
			replaceHot(f.hot, fmt.Sprint(i), hot)
			f.HotKeys()
			f.Stats()
			f.counts.Flush(context.Background(), time.Unix(0, 0))
			runtime.Gosched()
		}
	})
	work.Wait()
	close(stop)
	others.Wait()

	if n := passed.Load(); n != burst {
		t.Errorf("%d passed, want the burst of %d", n, burst)
	}
	got := f.keyCounts()
	for member, n := range map[string]int64{
		"hot GET /s?q=0": workers * each / 3, "hot GET /s?q=1": workers * each / 3, "hot GET /s?q=2": workers * each / 3,
		"each GET /s?q=0": workers * each / 3, "each GET /s?w=3": each, "each job?w=x": workers * each,
	} {
		if got[member] != n {
			t.Errorf("%s: counted %d, want %d", member, got[member], n)
		}
	}
	if n := f.Stats(); n.Panics != 0 || n.Displaced != 0 {
		t.Errorf("%+v", n)
	}
}

// The memory of a huge request is not kept.
func TestMonsterIsNotKept(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byNames("q"), 1, 1)}})
	for name, query := range map[string]string{
		"many":    strings.Repeat("a=b&", 100_000),
		"escaped": "junk=" + strings.Repeat("%20", 100_000),
		"long":    "q=" + strings.Repeat("x", 100_000),
	} {
		r := f.newRequest(&Request{Method: http.MethodGet, Path: "/s", Query: query}, f.rules.Load().unknown, false)
		r.applyRules()
		r.recycle()
		if r.route == nil {
			t.Errorf("%s: its buffers went back to the pool", name)
		}
	}
}
