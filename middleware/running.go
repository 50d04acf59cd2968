package middleware

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// runningTickets holds the tickets of requests that run and whose time a rule counts. While there are
// any, a timer charges them every interval. Without any, no timer is set, so a guard has no
// goroutine to end.
type runningTickets struct {
	shards [runningShards]runningShard
	timer  *time.Timer
	armed  atomic.Bool // whether the timer is set or chargeAll runs
}

const runningShards = 16

// runningShard is one part of the tickets. Its lock is never held while a ticket is charged.
type runningShard struct {
	mu      sync.Mutex
	tickets []*Ticket
	_       [32]byte // the rest of a cache line
}

// chargeEvery is the interval at which the time of running requests is charged.
const chargeEvery = base.FlushInterval

func (r *runningTickets) init() {
	r.timer = time.AfterFunc(time.Hour, r.chargeAll)
	r.timer.Stop()
}

// Start begins to measure the time of the request. Rules with count: ms then count it every
// 100 ms while the request runs, and charge it to their limits. At the end they charge only the
// rest, and [Cost].Time is ignored. Without Start they charge Cost.Time at the end. Start is for
// code that runs the handler itself, just before it does. A started ticket costs time until End,
// which therefore has to be called even if the handler panics. Start of a nil *Ticket does
// nothing.
func (t *Ticket) Start() {
	if !t.Counts(rules.Millis) || !t.start.IsZero() {
		return
	}
	t.start = time.Now()
	t.guard.running.add(t)
}

// stop returns the time since Start. Afterwards the ticket is no longer charged while it runs.
func (t *Ticket) stop() time.Duration {
	t.guard.running.remove(t)
	t.charging.Lock() // waits for a charge in progress
	defer t.charging.Unlock()
	return time.Since(t.start) // read after that charge, so it is no less than the charged time
}

// chargeElapsed charges the milliseconds that have passed since the last charge, if they are an
// interval. The caller has locked charging.
func (t *Ticket) chargeElapsed() {
	defer t.guard.countPanic()
	defer t.charging.Unlock()
	if elapsed := time.Since(t.start).Truncate(time.Millisecond); elapsed-time.Duration(t.charged)*time.Millisecond >= chargeEvery {
		t.charge(Cost{Time: elapsed})
	}
}

func (r *runningTickets) add(t *Ticket) {
	s := &r.shards[t.shard]
	s.mu.Lock()
	t.place = len(s.tickets)
	s.tickets = append(s.tickets, t)
	s.mu.Unlock()
	r.arm()
}

func (r *runningTickets) remove(t *Ticket) {
	s := &r.shards[t.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	end := len(s.tickets) - 1
	last := s.tickets[end]
	s.tickets[t.place], last.place = last, t.place
	s.tickets[end] = nil
	s.tickets = s.tickets[:end]
}

// arm sets the timer unless it is set.
func (r *runningTickets) arm() {
	if !r.armed.Load() && r.armed.CompareAndSwap(false, true) {
		r.timer.Reset(chargeEvery)
	}
}

// chargeAll charges all tickets, and sets the timer again if some are left. A ticket that is added
// at the same time either finds the timer unset, and sets it, or is found here.
func (r *runningTickets) chargeAll() {
	for i := range r.shards {
		r.shards[i].chargeAll()
	}
	r.armed.Store(false)
	for i := range r.shards {
		if r.shards[i].size() > 0 {
			r.arm()
			return
		}
	}
}

// chargeAll charges the tickets from the last to the first. It misses none: a removal fills the place with the
// last ticket, which has been charged or is still ahead.
func (s *runningShard) chargeAll() {
	for i := s.size() - 1; i >= 0; i-- {
		if t := s.hold(i); t != nil {
			t.chargeElapsed()
		}
	}
}

// hold returns the ticket at place i with charging locked, or nil if there is none any more. No
// one else holds charging as long as the ticket is in its place.
func (s *runningShard) hold(i int) *Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.tickets) {
		return nil
	}
	t := s.tickets[i]
	t.charging.Lock()
	return t
}

func (s *runningShard) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tickets)
}
