package middleware

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// countedShared is a backend at a network round trip that counts its calls.
type countedShared struct {
	farShared
	calls *atomic.Int64
}

func (s countedShared) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	s.calls.Add(1)
	return s.farShared.Do(ctx, op)
}

func (s countedShared) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	s.calls.Add(1)
	return s.farShared.DoAll(ctx, ops, results)
}

// Requests that arrive while others wait for an exact limit join their line without a call of
// their own. The line reserves for them, so a request takes one call.
func TestRequestsJoinTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 200
		var (
			calls atomic.Int64
			all   sync.WaitGroup
		)
		rule := exactly(waitRule(t, "r", rules.By{}, twentyASecond, 20, time.Minute), "")
		f := running(t, []rules.Rule{rule}, WithBackend(countedShared{farShared{newShared(t).Memory, time.Millisecond}, &calls}))
		for range requests {
			all.Go(func() {
				if !f.Check(search).Allowed {
					t.Error("a request did not pass")
				}
			})
			time.Sleep(2 * time.Millisecond)
		}
		all.Wait()
		if n := calls.Load(); n > requests*5/4 {
			t.Errorf("%d requests took %d calls", requests, n)
		}
	})
}
