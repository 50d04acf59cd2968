package middleware

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

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
	check := func(when string, want ...rules.Admitted) {
		t.Helper()
		if got, more := f.Admitted(2); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) || more {
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
	check("at first", rules.Admitted{ID: id("bytes GET /s?q=1"), N: 10, Span: time.Second}, rules.Admitted{ID: id("key GET /s?q=1"), N: 2, Span: time.Second})
	if got, more := f.Admitted(1); len(got) != 1 || !more {
		t.Errorf("%+v, %v", got, more)
	}
	for range 30 {
		advance(time.Second)
		f.Check(search)
		f.Admitted(2)
	}
	check("later", rules.Admitted{ID: id("key GET /s?q=1"), N: 10, Span: 10 * time.Second})
	for _, entry := range f.hot.All() {
		if s := f.stateOf(entry.Key).admitted; cap(s) > 20 {
			t.Errorf("%d samples", cap(s))
		}
	}
	f.SetControls([]rules.Control{{Key: rules.Key{Rule: "key", Text: "GET /s?q=1"}, Action: rules.ControlAllow, Until: time.Now().Add(time.Hour)}})
	for range 50 {
		f.Check(search)
	}
	check("allowed by an operator", rules.Admitted{ID: id("key GET /s?q=1"), N: 10, Span: 10 * time.Second})
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
	counts := rules.OnHotCounts{Stored: 7, Joined: 3, Alone: 3, AloneFor: "set-cookie"}
	want := []rules.Admitted{
		{ID: limiter.KeyID([]byte("key GET /s?q=1")), N: 4, Span: time.Second, OnHot: counts},
		{ID: limiter.KeyID([]byte("listed GET /l?q=1")), Span: time.Second, OnHot: rules.OnHotCounts{Stored: 2}},
	}
	if got, more := f.Admitted(2); !reflect.DeepEqual(got, want) || more {
		t.Errorf("%+v, %v; want %+v", got, more, want)
	}
	for _, key := range f.HotKeys() {
		if key.Rule == "key" && (key.OnHot != counts || key.Passed != 4) {
			t.Errorf("%+v", key)
		}
	}
	for range 12 {
		time.Sleep(time.Second)
		f.Admitted(2)
	}
	serve("/s?q=1", 5, Stored, "")
	want = []rules.Admitted{{ID: want[0].ID, Span: 10 * time.Second, OnHot: rules.OnHotCounts{Stored: 5}}}
	if got, _ := f.Admitted(2); !reflect.DeepEqual(got, want) {
		t.Errorf("later: %+v, want %+v", got, want)
	}
}
