package demo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Properties of the database that an API reads its answers from.
const (
	// databaseRate is the number of requests per second that the database answers. The log has up
	// to 443, so there is room for it, but not for a crowd.
	databaseRate = 600
	// databaseTime is the time of an answer that does not wait.
	databaseTime = 8 * time.Millisecond
	// databasePatience is the time after which a waiting request fails.
	databasePatience = 300 * time.Millisecond
)

// database simulates the backend that all instances of an API share. It answers a fixed number of
// requests per second. Faster ones wait in the order in which they came. The turns are computed,
// so that waiting times depend on the requests and not on the load of the machine.
type database struct {
	crowd      *flashCrowd // nil if there is none
	calls      latencies
	crowdCalls atomic.Int64 // part of calls: those measured for the crowd

	mu   sync.Mutex
	free time.Time // end of the last request's turn
}

// query waits for an answer. It reports whether one came in time.
func (d *database) query(ctx context.Context) bool {
	now := time.Now()
	d.calls.add(answerTime{answered: now}, false)
	if d.crowd != nil && d.crowd.isMeasured(now) {
		d.crowdCalls.Add(1)
	}
	d.mu.Lock()
	if d.free.Before(now) {
		d.free = now
	}
	wait := d.free.Sub(now)
	turn := wait <= databasePatience
	if turn {
		d.free = d.free.Add(time.Second / databaseRate)
		wait += databaseTime
	} else {
		wait = databasePatience
	}
	d.mu.Unlock()
	return base.Sleep(ctx, wait) == nil && turn
}
