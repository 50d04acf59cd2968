package limiter

import (
	"testing"
	"time"
	_ "time/tzdata" // has the tests' zones on every machine

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// windowStates creates the state of a quota, for each algorithm with windows.
var windowStates = map[rules.Algorithm]func(*rules.Quota, time.Duration) State{
	rules.FixedWindow: newFixedWindow, rules.SlidingLog: newSlidingLog, rules.SlidingBlocks: newSlidingBlocks,
}

var windowAlgorithms = []rules.Algorithm{rules.FixedWindow, rules.SlidingLog, rules.SlidingBlocks}

func windowQuota(a rules.Algorithm, n int64, per time.Duration) *rules.Quota {
	q := rules.Quota{Algorithm: a, Rate: rules.Rate{N: n, Per: per}}.WithDefaults()
	return &q
}

func newWindowState(t rapid.TB, q *rules.Quota, now time.Duration) State {
	t.Helper()
	if err := q.Validate(); err != nil {
		t.Fatal(err)
	}
	return windowStates[q.Algorithm](q, now)
}

// windowStep is a request at an instant and its expected result.
type windowStep struct {
	at   time.Duration
	ask  Request
	want Result
}

func allowedResult(limit, remaining int64, reset time.Duration) Result {
	return Result{Decision: rules.Decision{
		Allowed: true, Reason: rules.ReasonWithin, Limit: limit, Remaining: remaining, ResetAfter: reset,
	}}
}

func (r Result) took(n int64, mark time.Duration) Result {
	r.Taken, r.Mark = n, int64(mark)
	return r
}

func (r Result) after(delay time.Duration) Result {
	r.Delay = delay
	return r
}

func deniedResult(limit, remaining int64, retry, reset time.Duration) Result {
	return Result{Decision: rules.Decision{
		Reason: rules.ReasonLimited, Limit: limit, Remaining: remaining, RetryAfter: retry, ResetAfter: reset,
	}}
}

// slotted returns got, with the start of the slot as its mark if want has that mark. A window
// identifies a take by an instant within the slot.
func slotted(got, want Result) Result {
	if want.Taken > 0 && got.Mark >= want.Mark {
		got.Mark = want.Mark
	}
	got.Receipt = Receipt{}
	return got
}

func runWindowSteps(t *testing.T, s State, steps []windowStep) {
	t.Helper()
	for i, step := range steps {
		if got := slotted(s.Do(step.at, step.ask), step.want); got != step.want {
			t.Fatalf("step %d, %+v at %v:\n got %+v\nwant %+v", i, step.ask, step.at, got, step.want)
		}
	}
}
