package admitted

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// fleetOf has the heartbeats of the instances of a namespace with one hot key, and the aggregator
// that adds them up.
type fleetOf struct {
	t       *testing.T
	hot     published.Hot
	members map[string]published.Member
	totals  *Totals
	now     time.Time
}

func newFleetOf(t *testing.T) *fleetOf {
	return &fleetOf{
		t: t, hot: published.Hot{Key: rules.Key{Rule: "r", Text: "GET /s?q=1"}, Since: time.UnixMilli(1_700_000_000_000)},
		members: make(map[string]published.Member), totals: new(Totals), now: time.Now(),
	}
}

// report makes an instance report its outcomes since the key became hot.
func (f *fleetOf) report(incarnation string, passed, refused int64) {
	f.members[incarnation] = published.Member{Name: "a", Role: published.RoleInstance, Incarnation: incarnation, Heard: f.now, Admitted: []published.Admitted{{
		ID: limiter.KeyID([]byte(f.hot.Key.String())), Since: f.hot.Since, Outcomes: published.Outcomes{Passed: passed, Refused: refused},
	}}}
}

// check checks the sum after the next look at the heartbeats, and publishes it.
func (f *fleetOf) check(when string, passed, refused int64) {
	f.t.Helper()
	var members []published.Member
	for _, m := range f.members {
		members = append(members, m)
	}
	f.now = f.now.Add(time.Second)
	f.totals.Update([]published.Hot{f.hot}, members, f.now)
	f.hot.Outcomes = f.totals.Of(f.hot.Key, f.hot.Since.Add(time.Microsecond)) // published in milliseconds
	var got published.Outcomes
	if o := f.hot.Outcomes; o != nil {
		got = o.Outcomes
	}
	if want := (published.Outcomes{Passed: passed, Refused: refused}); got != want {
		f.t.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

// restart replaces the aggregator by a new one, which has what is published and no more.
func (f *fleetOf) restart() {
	f.totals = new(Totals)
	f.totals.Inherit([]published.Hot{f.hot})
	f.hot.Outcomes = f.totals.Of(f.hot.Key, f.hot.Since) // it writes its entries before it looks at the heartbeats
}

// The sum over all instances heals after lost heartbeats, and goes back neither when an instance or
// the aggregator restarts, nor when a heartbeat overtakes another.
func TestTotals(t *testing.T) {
	f := newFleetOf(t)
	f.check("no one reports", 0, 0)
	f.report("1", 10, 100)
	f.report("2", 5, 50)
	f.check("two", 15, 150)
	f.check("again", 15, 150)
	f.report("1", 30, 300) // some heartbeats were lost before
	f.check("healed", 35, 350)
	f.report("1", 20, 200) // overtaken
	f.check("overtaken", 35, 350)
	f.report("2", 6, 60)
	f.check("and another one counts", 36, 360)
	f.report("1", 40, 400)
	f.restart()
	f.report("2", 6, 60)
	f.check("aggregator restarted", 46, 460)
	delete(f.members, "2")
	f.check("one has left", 46, 460)
	f.report("3", 1, 2)
	f.check("and its successor came", 47, 462)
	f.restart()
	f.report("3", 2, 4)
	f.check("aggregator restarted after that", 48, 464)
	f.restart()
	delete(f.members, "3")
	f.check("one has left while there was no aggregator", 48, 464)
	f.report("1", 41, 400)
	f.check("the other goes on", 49, 464)
	f.report("4", 7, 7)
	f.check("one that will be cut off", 56, 471)
	cutOff := f.members["4"]
	delete(f.members, "4")
	f.now = f.now.Add(forget / 2)
	f.check("cut off", 56, 471)
	f.members["4"] = cutOff
	f.report("4", 8, 8)
	f.check("and back", 57, 472)
	delete(f.members, "4")
	f.now = f.now.Add(2 * forget)
	f.check("forgotten", 57, 472)
	if n := len(f.totals.keys[f.hot.Key].of); n != 1 {
		t.Errorf("%d reports are kept", n)
	}
	f.hot.Since, f.hot.Outcomes = f.hot.Since.Add(time.Minute), nil
	f.check("hot again, before anyone reports", 0, 0)
	f.report("1", 1, 1)
	f.check("hot again", 1, 1)
}

// A sum grows in the time since the previous reports of the instances that had counted more.
func TestGrowth(t *testing.T) {
	f := newFleetOf(t)
	f.hot.Owner = "statsd"
	began := f.now
	update := func(after time.Duration) []Growth {
		f.now = began.Add(after)
		var members []published.Member
		for _, m := range f.members {
			members = append(members, m)
		}
		return f.totals.Update([]published.Hot{f.hot}, members, f.now)
	}
	check := func(when string, got []Growth, refused int64, from, to time.Time) {
		t.Helper()
		want := Growth{f.hot.Key, "statsd", published.Outcomes{Refused: refused}, from, to}
		if len(got) != 1 || got[0].Outcomes != want.Outcomes || got[0].Owner != "statsd" || !got[0].From.Equal(from) || !got[0].To.Equal(to) {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	f.report("1", 0, 10)
	check("at first", update(0), 10, f.hot.Since, began)
	if got := update(time.Second); len(got) != 0 {
		t.Errorf("no new report, and %+v", got)
	}
	f.now = began.Add(30 * time.Second)
	f.report("1", 0, 40)
	check("half a minute later", update(30*time.Second), 30, began, began.Add(30*time.Second))
	f.now = began.Add(31 * time.Second)
	f.report("1", 0, 40)
	update(31 * time.Second)
	f.now = began.Add(32 * time.Second)
	f.report("1", 0, 41)
	check("a second later", update(32*time.Second), 1, began.Add(31*time.Second), began.Add(32*time.Second))
}

// An aggregator that restarts takes a sum for that of instances that have left only if all instances
// report all of their keys.
func TestTotalsOfCutReports(t *testing.T) {
	f := newFleetOf(t)
	f.report("1", 10, 100)
	f.check("at first", 10, 100)
	f.restart()
	f.members["1"] = published.Member{Role: published.RoleInstance, Incarnation: "1", Heard: f.now, MoreAdmitted: true}
	f.check("not reported", 10, 100)
	f.report("1", 11, 110)
	f.check("reported again", 11, 110)
}

// A key that is not published for a while, as after a loss in Redis, keeps its sum. One that has
// cooled is forgotten.
func TestTotalsForget(t *testing.T) {
	f := newFleetOf(t)
	f.report("1", 10, 100)
	f.check("at first", 10, 100)
	delete(f.members, "1")
	f.totals.Update(nil, nil, f.now.Add(keepUnlisted/2))
	f.hot.Outcomes = nil
	f.check("published again", 10, 100)
	f.totals.Update(nil, nil, f.now.Add(2*keepUnlisted))
	if n := len(f.totals.keys); n != 0 {
		t.Errorf("%d keys", n)
	}
}
