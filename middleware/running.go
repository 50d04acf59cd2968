package middleware

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
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
	tickets  []*runningPlace
	ended    endedUses
	charging *runningPlace // the ticket that is charged; nil if none is
	busy     sync.Mutex    // held while it is charged, and locked after mu
}

// runningTicket is a [Ticket].
type runningTicket interface {
	chargeRunning(*usageMeter)
	addEnded(*endedUses, time.Duration)
}

// runningPlace is a ticket's place among those that run.
type runningPlace struct {
	of    runningTicket
	shard uint32 // number of its part
	index int    // in that part, guarded by its lock
}

// chargeEvery is the interval at which the time of running requests is charged.
const chargeEvery = base.FlushInterval

func (r *runningTickets) init() {
	r.timer = time.AfterFunc(time.Hour, r.chargeAll)
	r.timer.Stop()
	r.epoch = time.Now()
}

func (r *runningTickets) add(t *runningPlace) {
	s := &r.shards[t.shard]
	s.mu.Lock()
	t.index = len(s.tickets)
	s.tickets = append(s.tickets, t)
	s.mu.Unlock()
	r.arm()
}

// remove removes a ticket, and returns the time of its end. If it is being charged, remove waits
// until it has been. The end is read after the last charge, so it is no earlier than the charged
// time.
func (r *runningTickets) remove(t *runningPlace) (end time.Duration) {
	s := &r.shards[t.shard]
	s.mu.Lock()
	n := len(s.tickets) - 1
	last := s.tickets[n]
	s.tickets[t.index], last.index = last, t.index
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
	t.of.addEnded(&s.ended, end)
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
			t.of.chargeRunning(usage)
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
func (s *runningShard) beginCharge(i int) *runningPlace {
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
