package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// An instance reports what the limits of its hot keys admitted in the last ten seconds, and no
// request that no limit was asked about. Its memory stays the same.
func TestAdmitted(t *testing.T) { synctest.Test(t, testAdmitted) }

func testAdmitted(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		hotRule(t, "key", "GET /s", byNames("q"), 3600*1000, 2), costRule(t, "bytes", rules.Bytes, 3600*1000, 10),
	}})
	f.heat(t, "key GET /s?q=1", "bytes GET /s?q=1")
	check := func(when string, want ...published.Admitted) {
		t.Helper()
		got, more := f.Admitted(2)
		got = slices.DeleteFunc(withoutOutcomes(got), func(a published.Admitted) bool { return a.N == 0 })
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) || more {
			t.Errorf("%s: %+v, %v; want %+v", when, got, more, want)
		}
	}
	id := func(key string) uint64 { return limiter.KeyID([]byte(key)) }
	advance := func(d time.Duration) {
		f.now += d
		time.Sleep(d)
	}
	advance(time.Second)
	for range 3 {
		_, ticket := f.Begin(search)
		ticket.End(Cost{Bytes: 5})
	}
	check("at first", published.Admitted{ID: id("bytes GET /s?q=1"), N: 10, Span: time.Second}, published.Admitted{ID: id("key GET /s?q=1"), N: 2, Span: time.Second})
	if got, more := f.Admitted(1); len(got) != 1 || !more {
		t.Errorf("%+v, %v", got, more)
	}
	for range 30 {
		advance(time.Second)
		f.Check(search)
		f.Admitted(2)
	}
	check("later", published.Admitted{ID: id("key GET /s?q=1"), N: 10, Span: 10 * time.Second})
	for _, entry := range f.hot.All() {
		if s := f.stateOf(entry.Key).admitted; cap(s) > 20 {
			t.Errorf("%d samples", cap(s))
		}
	}
	f.SetControls([]published.Control{{Key: rules.Key{Rule: "key", Text: "GET /s?q=1"}, Action: published.ControlAllow, Until: time.Now().Add(time.Hour)}})
	for range 50 {
		f.Check(search)
	}
	check("allowed by an operator", published.Admitted{ID: id("key GET /s?q=1"), N: 10, Span: 10 * time.Second})
	advance(time.Hour)
	check("after a pause")
	advance(time.Second)
	check("a second after it")
}

// scripted is a Sharer and a Sharing whose outcomes are prescribed.
type scripted struct{ next Shared }

func (s *scripted) ForRule(*rules.Rule) (Sharing, error) { return s, nil }
func (*scripted) Invalidate(host, path, query string)    {}
func (s *scripted) Share(r *http.Request, key string, header http.Header, admit func(bool) (http.Handler, bool)) Shared {
	if s.next.Outcome == Led {
		admit(false)
	}
	return s.next
}

// Requests that on_hot concerned are reported beside those that a limit admitted, by key and with
// the reason of the last one that went alone.
func TestAdmittedOnHot(t *testing.T) { synctest.Test(t, testAdmittedOnHot) }

func testAdmittedOnHot(t *testing.T) {
	limited, listed := hotRule(t, "key", "GET /s", byNames("q"), 3600*1000, 100), hotRule(t, "listed", "GET /l", byNames("q"), 3600*1000, 100)
	listed.Limit = nil
	for _, r := range []*rules.Rule{&limited, &listed} {
		r.OnHot = &rules.OnHot{Cache: time.Second}
	}
	sharer := &scripted{}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limited, listed}}, WithSharer(sharer))
	f.heat(t, "key GET /s?q=1", "listed GET /l?q=1")
	h := f.Handler(http.NotFoundHandler())
	serve := func(target string, n int, o Outcome, reason string) {
		sharer.next = Shared{Outcome: o, Reason: reason, Status: http.StatusOK}
		for range n {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, http.NoBody))
		}
	}
	time.Sleep(time.Second)
	serve("/s?q=1", 1, Led, "")
	serve("/s?q=1", 7, Stored, "")
	serve("/s?q=1", 3, Joined, "")
	serve("/s?q=1", 2, Alone, "private")
	serve("/s?q=1", 1, Alone, "set-cookie")
	serve("/s?q=1", 1, Refused, "")
	serve("/s?q=1", 1, Left, "")
	serve("/l?q=1", 2, Stored, "")
	counts := published.OnHotCounts{Stored: 7, Joined: 3, Alone: 3, AloneFor: "set-cookie"}
	want := []published.Admitted{
		{ID: limiter.KeyID([]byte("key GET /s?q=1")), N: 4, Span: time.Second, OnHot: counts},
		{ID: limiter.KeyID([]byte("listed GET /l?q=1")), Span: time.Second, OnHot: published.OnHotCounts{Stored: 2}},
	}
	got, more := f.Admitted(2)
	if o := got[0].Outcomes; o != (published.Outcomes{Passed: 4, Refused: 1, Served: 10}) || o != got[0].Lately {
		t.Errorf("%+v, lately %+v", o, got[0].Lately)
	}
	if got := withoutOutcomes(got); !reflect.DeepEqual(got, want) || more {
		t.Errorf("%+v, %v; want %+v", got, more, want)
	}
	for _, key := range f.HotKeys() {
		if key.Rule == "key" && (key.OnHot != OnHotCounts(counts) || key.Passed != 4) {
			t.Errorf("%+v", key)
		}
	}
	for range 12 {
		time.Sleep(time.Second)
		f.Admitted(2)
	}
	serve("/s?q=1", 5, Stored, "")
	want = []published.Admitted{{ID: want[0].ID, Span: 10 * time.Second, OnHot: published.OnHotCounts{Stored: 5}}, {ID: want[1].ID, Span: 10 * time.Second}}
	if got, _ := f.Admitted(2); !reflect.DeepEqual(withoutOutcomes(got), want) {
		t.Errorf("later: %+v, want %+v", got, want)
	}
}

func withoutOutcomes(all []published.Admitted) []published.Admitted {
	all = slices.Clone(all)
	for i := range all {
		all[i].Lately, all[i].Outcomes, all[i].Since = published.Outcomes{}, published.Outcomes{}, time.Time{}
	}
	return all
}

// The outcomes of a hot key's requests are totals since it became hot, also while this instance
// alone had found it hot, and not those of an earlier time.
func TestHotKeyOutcomes(t *testing.T) { synctest.Test(t, testHotKeyOutcomes) }

func testHotKeyOutcomes(t *testing.T) {
	waits := hotRule(t, "waits", "GET /w", byNames("q"), 3600, 1)
	waits.Limit.Mode, waits.Limit.Wait = rules.ModeWait, time.Minute
	busy := hotRule(t, "busy", "GET /b", byNames("q"), 0, 0)
	busy.Limit = &rules.Limit{Concurrency: 1, Mode: rules.ModeWait, Wait: time.Minute}
	start := time.Now()
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "key", "GET /s", byNames("q"), 3600, 10), waits, busy}}, WithClock(func() time.Duration { return time.Since(start) }))
	since := time.UnixMilli(1_700_000_000_000)
	heat := func(rule, text string, since time.Time) {
		replaceHot(f.hot, "", []published.Hot{{Key: rules.Key{Rule: rule, Text: text}, Mode: rules.ModeLimit, Since: since}})
	}
	check := func(when string, want published.Outcomes, since time.Time) {
		t.Helper()
		time.Sleep(time.Second)
		got, _ := f.Admitted(9)
		if want == (published.Outcomes{}) && len(got) == 0 {
			return
		}
		if len(got) != 1 || got[0].Outcomes != want || !got[0].Since.Equal(since) {
			t.Errorf("%s: %+v, want %+v since %v", when, got, want, since)
		}
	}
	ask := func(path string, n int) {
		for range n {
			f.Check(Request{Method: "GET", Path: path, Query: "q=1"})
		}
	}
	key := rules.Key{Rule: "key", Text: "GET /s?q=1"}
	f.hot.Mark(published.Hot{Key: key, Mode: rules.ModeLimit, Since: start})
	ask("/s", 4)
	check("hot here alone", published.Outcomes{}, start)
	heat(key.Rule, key.Text, since)
	ask("/s", 9)
	check("published", published.Outcomes{Passed: 11, Refused: 2}, since)
	f.SetControls([]published.Control{{Key: key, Action: published.ControlBlock, Until: time.Now().Add(time.Hour)}})
	ask("/s", 5)
	check("blocked", published.Outcomes{Passed: 11, Refused: 7}, since)
	f.SetControls(nil)
	f.hot.Unmark(key)
	replaceHot(f.hot, "", nil)
	ask("/s", 3)
	heat(key.Rule, key.Text, since.Add(time.Minute))
	ask("/s", 2)
	check("hot again", published.Outcomes{Passed: 2}, since.Add(time.Minute))

	heat("waits", "GET /w?q=1", since)
	ask("/w", 3)
	check("waiting", published.Outcomes{Passed: 3, Waited: 2}, since)
	heat("busy", "GET /b?q=1", since)
	req := Request{Method: "GET", Path: "/b", Query: "q=1"}
	_, ticket := f.Begin(req)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, next := f.Begin(req)
		next.End(Cost{})
	}()
	time.Sleep(time.Second)
	ticket.End(Cost{})
	<-done
	check("waiting for a permit", published.Outcomes{Passed: 2, Waited: 1}, since)
}

// If there are more hot keys than a report has room for, each is reported sooner or later.
func TestReportsRotate(t *testing.T) { synctest.Test(t, testReportsRotate) }

func testReportsRotate(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "key", "GET /s", byNames("q"), 3600, 10)}})
	var members []string
	for q := range 20 {
		members = append(members, fmt.Sprint("key GET /s?q=", q))
	}
	f.heat(t, members...)
	for q := range 20 {
		for range 1 + q%3 {
			f.Check(Request{Method: "GET", Path: "/s", Query: fmt.Sprint("q=", q)})
		}
	}
	seen := make(map[uint64]bool)
	for range 8 {
		time.Sleep(time.Second)
		got, more := f.Admitted(4)
		if len(got) != 4 || !more {
			t.Fatalf("%d, %v", len(got), more)
		}
		for _, a := range got {
			seen[a.ID] = true
		}
	}
	if len(seen) < 16 {
		t.Errorf("%d keys of 20 in 8 reports of 4", len(seen))
	}
}
