package blame

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// A tailBench adds ten keys with one request in each step, which are 5 % of all.
type tailBench struct{ *bench }

func newTailBench(t *testing.T) tailBench {
	b := tailBench{&bench{t: t, judge: New(Config{Pool: "db"}), now: epoch}}
	b.tailSteps(120, fast, Usage{})
	return b
}

// tailSteps gives n steps in which only the requests of those ten keys take this long.
func (b tailBench) tailSteps(n int, tail time.Duration, culprit Usage) {
	for range n {
		b.now = b.now.Add(interval)
		routes, keys := rows(fast, culprit)
		for i := range 10 {
			u := usage(1, tail)
			routes[0].Add(&u)
			keys = append(keys, KeyUsage{nameOf(fmt.Sprint("rare", i)), "/", u})
		}
		b.judge.Observe(b.now, routes, keys)
	}
}

// hanging is the usage of five requests that run for the whole step.
var hanging = Usage{Busy: 5 * interval}

// One request at a time on a shared processor delays few others: the median shows nothing.
func TestDearKeyIsTriedWhenTheSlowestSuffer(t *testing.T) {
	b := newTailBench(t)
	b.tailSteps(10, slow, hanging)
	if b.stage() != published.HoldTrial || b.judge.present.overloaded() {
		t.Fatalf("after 1 s: %+v, overloaded %v", b.judge.Held(), b.judge.present.overloaded())
	}
	b.tailSteps(20, fast, refused)
	if b.stage() != published.HoldTrial || b.judge.trial.running {
		t.Fatalf("the slowest are fast again: %+v", b.judge.Held())
	}
}

func TestSlowestWithoutADearKeyBlameNobody(t *testing.T) {
	b := newTailBench(t)
	b.tailSteps(100, slow, usage(1, fast))
	if b.stage() != "" {
		t.Error("held a key that costs as usual")
	}
}

func TestDearKeyThatSlowsNoneDownIsLeftAlone(t *testing.T) {
	b := newTailBench(t)
	b.tailSteps(100, fast, hanging)
	if b.stage() != "" {
		t.Error("held although the slowest were as fast as ever")
	}
}

// What an early trial does not show, an overload may.
func TestEarlyTrialDoesNotDelayOneInAnOverload(t *testing.T) {
	b := newTailBench(t)
	b.tailSteps(10, slow, hanging)
	b.tailSteps(32, slow, refused)
	b.wantRelease(whyNoGain)
	b.tailSteps(20, slow, hanging)
	if b.stage() != "" {
		t.Fatal("tried again within 2 s")
	}
	b.steps(6, slow, hanging)
	if b.stage() != published.HoldTrial {
		t.Error("not tried in an overload")
	}
}

func TestPermitsFallWhenTheSlowestSuffer(t *testing.T) {
	b := newTailBench(t)
	b.tailSteps(10, slow, hanging)
	served := 0
	for range 400 {
		if b.permits() > 0 {
			b.tailSteps(3, slow, scan)
			served += 3
		} else {
			b.tailSteps(1, fast, refused)
		}
	}
	if b.stage() != published.HoldKept || served == 0 || served > 60 {
		t.Errorf("stage %q, requests in %d of 400 steps", b.stage(), served)
	}
}

// A key whose requests stop is released after a time that fits their rate while they came.
func TestStoppedKeyIsReleasedSoon(t *testing.T) {
	b := newTailBench(t)
	b.tailSteps(10, slow, hanging)
	for range 10 {
		b.tailSteps(1, fast, refused)
		b.tailSteps(4, fast, Usage{})
	}
	b.tailSteps(65, fast, Usage{})
	b.wantRelease(whyStopped)
}

// While a key is held, the others may become faster than they ever were. Then less hurts them.
func TestSlowestAreLearnedWhileAKeyIsHeld(t *testing.T) {
	b := tailBench{&bench{t: t, judge: New(Config{Pool: "db"}), now: epoch}}
	b.tailSteps(120, slow, Usage{})
	before := b.judge.tail.level
	b.tailSteps(10, 5*slow, hanging)
	for range 600 {
		if b.permits() > 0 {
			b.tailSteps(3, 5*slow, scan)
		} else {
			b.tailSteps(1, fast, refused)
		}
	}
	if after := b.judge.tail.level; b.stage() != published.HoldKept || after > bucket(2*fast.Seconds()) || before <= after {
		t.Errorf("stage %q, level %d before and %d after", b.stage(), before, after)
	}
}
