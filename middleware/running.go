package middleware

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// runningTickets holds the tickets of requests that run and whose time a rule counts. While there
// are any, a timer charges them every interval. Without any, no timer is set, so a guard has no
// goroutine to end.
type runningTickets struct {
	shards [runningShards]runningShard
	timer  *time.Timer
	epoch  time.Time   // the tickets' times are since then: that is one reading of the clock, not two
	armed  atomic.Bool // whether the timer is set or chargeAll runs
	usage  usageMeter
}

const runningShards = 16

// runningShard is one part of the tickets.
type runningShard struct {
	mu       sync.Mutex // guards the tickets, charging and ended; not held while a ticket is charged
	tickets  []*Ticket
	ended    endedUses
	charging *Ticket    // the ticket that is charged; nil if none is
	busy     sync.Mutex // held while it is charged, and locked after mu
}

// chargeEvery is the interval at which the time of running requests is charged.
const chargeEvery = base.FlushInterval

func (r *runningTickets) init() {
	r.timer = time.AfterFunc(time.Hour, r.chargeAll)
	r.timer.Stop()
	r.epoch = time.Now()
}

// Start begins to measure the time of the request. Rules with count: ms then count it every
// 100 ms while the request runs, and charge it to their limits. At the end they charge only the
// rest, and [Cost].Time is ignored. Without Start they charge Cost.Time at the end. Start is for
// code that runs the handler itself, just before it does. A started ticket costs time until End,
// which therefore has to be called even if the handler panics. Start of a nil *Ticket does
// nothing.
func (t *Ticket) Start() {
	if !t.Counts(rules.Millis) || t.started {
		return
	}
	r := &t.guard.running
	t.started, t.start = true, time.Since(r.epoch)
	r.add(t)
}

// Metered reports whether a rule finds hot keys by their cost, so that the ticket has to be started
// even by code that knows the time at the end. It returns false for a nil *Ticket.
func (t *Ticket) Metered() bool { return t != nil && t.metered }

// StartStream is Start for a request that lasts for as long as its client wants, such as a stream of
// messages. Its time says nothing of what it costs, so rules with hot.cost leave it out.
func (t *Ticket) StartStream() {
	if t != nil {
		t.metered = false
	}
	t.Start()
}

// elapsed returns the time since Start.
func (t *Ticket) elapsed() time.Duration { return time.Since(t.guard.running.epoch) - t.start }

// stop returns the time since Start. Afterwards the ticket is no longer charged while it runs.
func (t *Ticket) stop() time.Duration { return t.guard.running.remove(t) - t.start }

// chargeElapsed charges the time since the last charge, if it is an interval. Both times are
// since Start and rounded up, as at the end.
func (t *Ticket) chargeElapsed() {
	defer t.guard.countPanic()
	if cost := (Cost{Time: t.elapsed()}); cost.inUnit(rules.Millis)-t.charged >= chargeEvery.Milliseconds() {
		t.charge(cost)
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

// remove removes a ticket, and returns the time of its end. If it is being charged, remove waits
// until it has been. The end is read after the last charge, so it is no earlier than the charged
// time.
func (r *runningTickets) remove(t *Ticket) (end time.Duration) {
	s := &r.shards[t.shard]
	s.mu.Lock()
	n := len(s.tickets) - 1
	last := s.tickets[n]
	s.tickets[t.place], last.place = last, t.place
	s.tickets[n] = nil
	s.tickets = s.tickets[:n]
	if s.charging == t {
		s.mu.Unlock()
		s.busy.Lock() // waits for the charge
		s.busy.Unlock()
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	end = time.Since(r.epoch)
	if t.metered {
		s.ended.add(t, end)
	}
	return end
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
	r.usage.begin(time.Since(r.epoch))
	for i := range r.shards {
		r.shards[i].chargeAll(&r.usage)
	}
	r.armed.Store(false)
	for i := range r.shards {
		if r.shards[i].size() > 0 {
			r.arm()
			return
		}
	}
}

// chargeAll charges the tickets from the last to the first. It misses none: the last ticket, which
// fills the place of one that is removed, has been charged or is still ahead.
func (s *runningShard) chargeAll(usage *usageMeter) {
	for i := s.size() - 1; i >= 0; i-- {
		if t := s.beginCharge(i); t != nil {
			t.chargeElapsed()
			usage.addRunning(t)
			t.cancelIfHeld()
			s.busy.Unlock()
		}
	}
	s.mu.Lock()
	s.charging = nil
	ended := s.ended.take()
	s.mu.Unlock()
	usage.addEnded(ended)
	s.mu.Lock()
	s.ended.giveBack(ended)
	s.mu.Unlock()
}

// beginCharge begins to charge the ticket at place i, and returns it with busy locked. It returns
// nil if there is none any more.
func (s *runningShard) beginCharge(i int) *Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.tickets) {
		return nil
	}
	s.charging = s.tickets[i]
	s.busy.Lock()
	return s.charging
}

func (s *runningShard) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tickets)
}
