package middleware

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// agreeWithin is the time that an available aggregator has to confirm a key that only this
// instance has found hot.
const agreeWithin = 2 * time.Second

// localHot holds the keys that only this instance has found hot. They are limited at once.
// If the aggregator publishes the key, the published entry replaces the mark. If it does not
// within agreeWithin, the key is refuted: its mark is removed until the collector finds the key
// hot again. While no aggregator is available, a mark stays until the key cools here.
type localHot struct {
	hot    *hotset.Set[*hotState]
	counts *collector.Collector // nil if there is none

	// marking is held while marks are made and removed, so that this happens in the order of
	// the decisions. It is locked before the hot set's lock, which is locked before mu.
	marking sync.Mutex

	mu        sync.Mutex
	marks     map[rules.Key]*localMark
	published map[rules.Key]struct{}
	fleet     published.Fleet
	alive     time.Time // when an aggregator became available; zero if none is
	timer     *time.Timer

	found, refuted int64
}

// localMark is the state of one key.
type localMark struct {
	since     time.Time // when it became hot here without being published
	published bool
}

func newLocalHot(counts *collector.Collector) *localHot {
	l := &localHot{counts: counts, marks: make(map[rules.Key]*localMark)}
	l.timer = time.AfterFunc(time.Hour, l.refuteMarks)
	l.timer.Stop()
	return l
}

// set records that a key has become hot by this instance's own count, or has cooled.
func (l *localHot) set(h published.Hot, hot bool) {
	l.marking.Lock()
	defer l.marking.Unlock()
	if !hot {
		l.mu.Lock()
		delete(l.marks, h.Key)
		l.mu.Unlock()
		l.hot.Unmark(h.Key)
		return
	}
	l.mu.Lock()
	_, published := l.published[h.Key]
	l.marks[h.Key] = &localMark{since: time.Now(), published: published}
	l.found++
	l.armTimer()
	l.mu.Unlock()
	l.hot.Mark(h)
}

// updatePublished records the keys that are hot now. The caller holds the hot set's lock.
func (l *localHot) updatePublished(hot []published.Hot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published = make(map[rules.Key]struct{}, len(hot))
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
	l.armTimer()
}

// updateFleet records what the aggregator knows about the fleet.
func (l *localHot) updateFleet(f published.Fleet) {
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
	l.armTimer()
}

// steer passes the collector the keys whose counts are needed in full. The caller holds mu.
func (l *localHot) steer() {
	if l.counts == nil {
		return
	}
	hot := make([]rules.Key, 0, len(l.published))
	for key := range l.published {
		hot = append(hot, key)
	}
	l.counts.Steer(l.fleet, hot)
}

// refutedAt returns when a mark will be refuted unless it is published; zero means never. The
// caller holds mu.
func (l *localHot) refutedAt(m *localMark) time.Time {
	if l.alive.IsZero() || m.published {
		return time.Time{}
	}
	since := m.since
	if l.alive.After(since) {
		since = l.alive
	}
	return since.Add(agreeWithin)
}

// armTimer sets the timer to the next refutation of a mark. The caller holds mu.
func (l *localHot) armTimer() {
	var next time.Time
	for _, m := range l.marks {
		if due := l.refutedAt(m); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	if next.IsZero() {
		l.timer.Stop()
	} else {
		l.timer.Reset(time.Until(next))
	}
}

// refuteMarks removes the marks that the aggregator did not confirm in time.
func (l *localHot) refuteMarks() {
	l.marking.Lock()
	defer l.marking.Unlock()
	l.mu.Lock()
	now := time.Now()
	var over []rules.Key
	for key, m := range l.marks {
		if due := l.refutedAt(m); !due.IsZero() && !due.After(now) {
			delete(l.marks, key)
			over = append(over, key)
		}
	}
	l.refuted += int64(len(over))
	l.armTimer()
	l.mu.Unlock()
	for _, key := range over {
		l.hot.Unmark(key)
	}
}

// stats returns the number of keys that only this instance had found hot, and how many of
// them the aggregator did not confirm.
func (l *localHot) stats() (found, refuted int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.found, l.refuted
}
