package window

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Counts that are taken off a total leave the window together with it, and the room for them is
// accounted for.
func TestTakenOffIsForgotten(t *testing.T) {
	const budget = 2*(groupSize+8*10) + 8*10
	g := NewGroups(10, budget, false)
	g.TakeOff([]byte("GET /s?~again&q"), 1, 5)
	g.Add([]byte("GET /s?q=1"), 1, 8, decode.NotInGroup)
	g.Add([]byte("GET /s?p=1"), 1, 8, decode.NotInGroup)
	g.TakeOff([]byte("GET /s?~again&p"), 1, 5) // no room
	g.TakeOff([]byte("GET /s?~again&o"), 1, 5)
	if of := g.groupOf([]byte("GET /s?q=2"), false); of == nil || of.Sum(5, 10) != 3 || of.Sum(12, 10) != 0 {
		t.Errorf("%+v", of)
	}
	if of := g.groupOf([]byte("GET /s?p=2"), false); of == nil || of.Sum(5, 10) != 8 {
		t.Errorf("%+v", of)
	}
	if len(g.byName) != 2 || g.Used() != budget {
		t.Errorf("%d groups, %d bytes", len(g.byName), g.Used())
	}
	g.Sweep(20)
	if len(g.byName) != 0 || g.Used() != 0 {
		t.Errorf("%d groups, %d bytes after all is over", len(g.byName), g.Used())
	}
}

// Without room the repeats of a group are unknown, and the highest count of its keys bounds them.
func TestRepeatsAreBounded(t *testing.T) {
	r := NewTotals(30, 2*2*(totalSize+8*30))
	w := New(rules.NewWindow(time.Second), 3, 1<<20)
	w.missing = NewMissing()
	for i := range 3 {
		r.AddRepeats(fmt.Appendf(nil, "GET /%d?~again&q", i), 5, 7)
	}
	for group, want := range map[string]int64{"GET /0?q": 7, "GET /1?q": 7, "GET /2?q": published.Unknown, "GET /0?p": published.Unknown} {
		if got := r.HighRepeats(w, []byte(group), 6); got != want {
			t.Errorf("%s: %d repeats, want %d", group, got, want)
		}
	}
	if got := r.HighRepeats(w, []byte("GET /0?p"), 5+int64(w.Panes)); got != 0 {
		t.Errorf("%d repeats once it is over", got)
	}
	if r.Sweep(40); r.Used() != 0 {
		t.Errorf("%d bytes are left after all is over", r.Used())
	}
}

// Without room for more, a route has no total, and a key of the route does not count as all of its
// traffic.
func TestTotalsAreBounded(t *testing.T) {
	totals := NewTotals(30, 2*3*(totalSize+8*30))
	for i := range 10 {
		totals.Add([]byte(fmt.Sprintf("GET /%d?*", i)), 5, 7)
	}
	if len(totals.byRoute) != 3 || totals.totalOf([]byte("GET /2?q=1")) == nil || totals.totalOf([]byte("GET /7?q=1")) != nil {
		t.Errorf("%d totals, want the first three", len(totals.byRoute))
	}
	totals.Sweep(40)
	if totals.Used() != 0 {
		t.Errorf("%d bytes are left after all is over", totals.Used())
	}
}
