package middleware

import (
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
		if s := f.stateOf(entry.Key).admitted; cap(s) > 16 {
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
