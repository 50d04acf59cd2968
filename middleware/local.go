package middleware

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam"
)

// agreeWithin is how long the aggregator, while it answers, has to agree that a
// key is hot which this instance alone has found so.
const agreeWithin = 2 * time.Second

// locals are the keys that this instance alone has found hot: they are limited
// here at once, and until the aggregator has had the time to agree. What it
// publishes takes the place of a mark; what it does not is refuted, and the mark
// taken back until the collector finds the key hot anew. While no aggregator
// answers a mark stays until the key cools here.
//
// It is told of events by others and owns no goroutine but that of its timer.
type locals struct {
	guard *Guard

	// marking is held while marks are made and taken back, so that the hot set has
	// them in the order in which they are decided. It comes before the hot set's
	// own lock, and that before mu.
	marking sync.Mutex

	mu        sync.Mutex
	marks     map[hotparam.Key]*mark
	published map[hotparam.Key]struct{}
	fleet     hotparam.Fleet
	alive     time.Time // since when the aggregator answers; zero: it does not
	timer     *time.Timer

	found, refuted int64
}

// mark is one key.
type mark struct {
	since     time.Time // that it is hot here, and not published
	published bool
}

func newLocals(g *Guard) *locals {
	l := &locals{guard: g, marks: make(map[hotparam.Key]*mark)}
	l.timer = time.AfterFunc(time.Hour, l.review)
	l.timer.Stop()
	return l
}

// tell hears from the collector of a key that is hot here, or has cooled.
func (l *locals) tell(h hotparam.Hot, hot bool) {
	l.marking.Lock()
	defer l.marking.Unlock()
	if !hot {
		l.mu.Lock()
		delete(l.marks, h.Key)
		l.mu.Unlock()
		l.guard.hot.Unmark(h.Key)
		return
	}
	l.mu.Lock()
	_, published := l.published[h.Key]
	l.marks[h.Key] = &mark{since: time.Now(), published: published}
	l.found++
	l.arm()
	l.mu.Unlock()
	l.guard.hot.Mark(h)
}

// swapped hears what is hot now. It is called under the hot set's lock.
func (l *locals) swapped(hot []hotparam.Hot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published = make(map[hotparam.Key]struct{}, len(hot))
	for i := range hot {
		if !hot[i].Local {
			l.published[hot[i].Key] = struct{}{}
		}
	}
	for key, m := range l.marks {
		_, published := l.published[key]
		if m.published && !published {
			m.since = time.Now()
		}
		m.published = published
	}
	l.steer()
	l.arm()
}

// heard hears what the aggregator tells of the fleet.
func (l *locals) heard(f hotparam.Fleet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fleet = f
	switch {
	case f.Instances == 0:
		l.alive = time.Time{}
	case l.alive.IsZero():
		l.alive = time.Now()
	}
	l.steer()
	l.arm()
}

// steer tells the collector what it needs to know to send the right counts in
// time. The caller holds mu.
func (l *locals) steer() {
	hot := make([]hotparam.Key, 0, len(l.published))
	for key := range l.published {
		hot = append(hot, key)
	}
	l.guard.counts.Steer(l.fleet, hot)
}

// due is when a mark will be refuted unless something happens; zero: never. The
// caller holds mu.
func (l *locals) due(m *mark) time.Time {
	if l.alive.IsZero() || m.published {
		return time.Time{}
	}
	since := m.since
	if l.alive.After(since) {
		since = l.alive
	}
	return since.Add(agreeWithin)
}

// arm sets the timer to the next mark that is due. The caller holds mu.
func (l *locals) arm() {
	var next time.Time
	for _, m := range l.marks {
		if due := l.due(m); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	if next.IsZero() {
		l.timer.Stop()
	} else {
		l.timer.Reset(time.Until(next))
	}
}

// review takes back the marks that the aggregator has not agreed to in time.
func (l *locals) review() {
	l.marking.Lock()
	defer l.marking.Unlock()
	l.mu.Lock()
	now := time.Now()
	var over []hotparam.Key
	for key, m := range l.marks {
		if due := l.due(m); !due.IsZero() && !due.After(now) {
			delete(l.marks, key)
			over = append(over, key)
		}
	}
	l.refuted += int64(len(over))
	l.arm()
	l.mu.Unlock()
	for _, key := range over {
		l.guard.hot.Unmark(key)
	}
}

// stats are how many keys were found hot here alone, and how many of these the
// aggregator did not agree to.
func (l *locals) stats() (found, refuted int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.found, l.refuted
}
