package e2e

import (
	"testing"
	"time"
)

// Without any aggregator an instance limits a key that reaches the whole threshold on it alone.
// It does so at once, marks the key as its own finding, and ends the limit when the traffic has
// ended; the other instance limits nothing. When an aggregator starts, both limit the key.
func TestLocalFirst(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), searchRule)
	apis := f.startAPIs(2)
	alone := flowsAt(apis[:1], "/search?q=phone", 2*threshold, mayBeLimited)[0]
	stop := f.beginFlows(alone)
	within(t, patience, "refused by the one instance", func() bool {
		all := alone.all()
		return len(all) > 0 && all[len(all)-1].refused()
	})
	in := apis[0].state()
	if !in.holds(phone) || !in.Hot[0].Local || in.Guard.Local != 1 {
		t.Errorf("instance 0 holds to %+v, its guard says %+v; want phone as its own finding", in.Hot, in.Guard)
	}
	if other := apis[1].state(); len(other.Hot) > 0 {
		t.Errorf("instance 1 holds to %+v, and nobody can have told it", other.Hot)
	}
	stop()
	f.awaitCool(patience, apis)

	f.startAggregator()
	f.beginFlows(alone)
	f.awaitHot(patience, apis, phone)
	within(t, patience, "the aggregator's word in place of the instance's own", func() bool {
		return all(apis, func(in instance) bool { return in.holds(phone) && !in.Hot[0].Local })
	})
	mustBeGood(t, []*flow{alone})
	if took := time.Since(in.Hot[0].Since); took < 0 {
		t.Errorf("hot since %v from now", -took)
	}
}
