package cost

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/bench/load"
	"github.com/hotparam/hotparam/internal/published"
)

func TestScenariosHaveTheirShares(t *testing.T) {
	l := Load{Rate: 1000, Share: 0.01, Before: 10 * time.Second, During: 20 * time.Second, After: 10 * time.Second}
	for name, want := range map[string]struct{ keys, requests int }{"none": {0, 0}, "one": {1, 200}, "ten": {10, 2000}, "moving": {4, 200}, "pair": {1, 200}, "two": {2, 400}} {
		requests := scenario(t, name).requests(l)
		if !slices.IsSortedFunc(requests, func(a, b request) int { return int(a.due - b.due) }) {
			t.Errorf("%s: not in the order in which they are due", name)
		}
		causes, n := make(map[string]bool), 0
		for _, r := range requests {
			if r.cause == "" {
				continue
			}
			causes[r.cause], n = true, n+1
			if r.due < l.Before || r.due >= l.Before+l.During {
				t.Errorf("%s: %s at %v", name, r.cause, r.due)
			}
		}
		if len(causes) != want.keys || n < want.requests*8/10 || n > want.requests*12/10 {
			t.Errorf("%s: %d causes with %d requests, want %d with %d", name, len(causes), n, want.keys, want.requests)
		}
		if others := len(requests) - n; others < 38_000 || others > 42_000 {
			t.Errorf("%s: %d other requests, want 40000", name, others)
		}
	}
}

// Ten innocent requests a second take 2 ms, and 11 ms while the cause is not held, from a second after its first.
func TestJudgeComparesWithTheGoals(t *testing.T) {
	const s = time.Second
	r := &Result{Load: Load{Before: 10 * s, During: 10 * s, After: 15 * s}}
	for due := time.Duration(0); due < r.Load.end(); due += s / 10 {
		took := 2 * time.Millisecond
		if due >= 11*s && due < 12*s {
			took = 11 * time.Millisecond
		}
		r.requests, r.samples = append(r.requests, request{due: due}), append(r.samples, load.Sample{Status: http.StatusOK, Took: took})
	}
	for due := 10 * s; due < 20*s; due += s {
		r.requests, r.samples = append(r.requests, request{due: due, cause: "scan"}), append(r.samples, load.Sample{Status: http.StatusTooManyRequests})
	}
	trial, kept := &published.Hold{Stage: published.HoldTrial}, &published.Hold{Stage: published.HoldKept}
	hold := func(from time.Duration, holds ...*published.Hold) *Held {
		h := &Held{From: from}
		for i, hold := range holds {
			h.record(from+time.Duration(i)*s, hold)
		}
		return h
	}
	keptFor := func(n int) []*published.Hold { return slices.Repeat([]*published.Hold{kept}, n) }
	r.Holds = map[string]*Held{"scan": hold(12*s, append([]*published.Hold{trial}, keptFor(12)...)...), "other": hold(11*s, trial, nil)}
	v := r.Judge()
	if v.Found != 2*s || v.Slow != s || v.Released != 5*s || v.Ratio != 1 || v.Calm != 2 || len(v.Missed)+len(v.Kept)+len(v.Gaps)+len(v.Blamed) != 0 || !slices.Equal(v.Tried, []string{"other"}) {
		t.Errorf("a run that meets all goals: %+v", v)
	}
	if want := (Figures{Served: 100, P50: 2 * time.Millisecond, P99: 11 * time.Millisecond}); v.During != want {
		t.Errorf("the others: %+v, want %+v", v.During, want)
	}
	r.Holds = map[string]*Held{"scan": hold(18*s, append([]*published.Hold{kept, nil}, keptFor(16)...)...), "other": hold(11*s, trial, kept)}
	if v := r.Judge(); v.Found != 8*s || len(v.Kept) != 1 || len(v.Gaps) != 1 || len(v.Blamed) != 1 {
		t.Errorf("a run that meets none: %+v", v)
	}
	r.Holds = nil
	if v := r.Judge(); !slices.Equal(v.Missed, []string{"scan"}) || v.Ratio != 1 {
		t.Errorf("a run without a limiter: %+v", v)
	}
}
