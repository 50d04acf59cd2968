package limiter

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// In an outage longer than a window, grants of the current one are charged, whether or not a Charge
// of earlier ones was lost.
func TestLedgerChargesTheCurrentWindow(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			op := Op{Name: "users", Key: "ann", Quota: &rules.Quota{
				Algorithm: rules.FixedWindow, Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 10,
			}}
			add := func(n int64) {
				s := l.lock(op.Name, op.Key)
				l.add(s, &op, &Result{Taken: n, Decision: rules.Decision{Limit: 10, Remaining: 10 - n}}, 1)
				s.mu.Unlock()
			}
			add(3)
			if lost {
				l.chargeFor(&op, time.Now())
			}
			time.Sleep(1500 * time.Millisecond)
			add(2)
			time.Sleep(time.Millisecond)
			if c, ok := l.chargeFor(&op, time.Now()); !ok || c.n != 2 || c.op.Within != time.Millisecond {
				t.Errorf("lost %v: charge of %d, within %v", lost, c.n, c.op.Within)
			}
		})
	}
}
