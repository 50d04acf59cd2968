package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// wait is a call of WaitN and its result.
type wait struct {
	n              int64
	patience       time.Duration // time until it gives up, or 0
	deadline       time.Duration // deadline of its context, or 0
	came, returned time.Duration
	err            error
}

func (w *wait) String() string {
	return fmt.Sprintf("%d at %v, patience %v, deadline %v: %v at %v", w.n, w.came, w.patience, w.deadline, w.err, w.returned)
}

// mixOfWaits is a set of random callers of one key.
type mixOfWaits struct {
	*rapid.T
	quota rules.Quota
	trip  time.Duration
	one   bool // all want one permit
	waits []*wait
}

// Callers wait for any number of permits and for any time. At most the quota is admitted, and none
// of it is lost while someone waits. A caller that cannot be served in time is refused at once, and
// nothing stays behind.
func TestWaitsInAnyMix(t *testing.T) {
	checkInBubble(t, func(rt *rapid.T) {
		m := &mixOfWaits{T: rt, one: rapid.Bool().Draw(rt, "each wants one")}
		m.quota = rules.Quota{
			Algorithm: rapid.SampledFrom([]rules.Algorithm{rules.TokenBucket, rules.SlidingLog, rules.LeakyBucket}).Draw(rt, "algorithm"),
			Rate:      rules.Rate{N: 10, Per: time.Second}, Burst: rapid.Int64Range(1, 4).Draw(rt, "burst"),
		}
		if m.quota.Algorithm == rules.SlidingLog {
			m.quota.Burst = 0
		}
		m.quota.Shape = m.quota.Algorithm == rules.LeakyBucket && rapid.Bool().Draw(rt, "shape")
		m.quota = m.quota.WithDefaults()
		var backend limiter.Backend = newMemory(t)
		if rapid.Bool().Draw(rt, "remote") {
			m.trip = rapid.SampledFrom([]time.Duration{2 * time.Millisecond, 70 * time.Millisecond}).Draw(rt, "trip")
			backend = distant{backend, m.trip}
		}
		l := newNamed(t, backend, "x", m.quota)
		m.run(l)
		m.bounded()
		m.inTime()
		if m.trip == 0 && m.one && !m.quota.Shape {
			m.busy()
		}
		if l.Waiting() != 0 {
			rt.Fatalf("a line is left")
		}
		time.Sleep(2*time.Second + 60*m.trip) // returns to a remote backend, in any order, may become free late
		if d, err := l.AllowN(context.Background(), "k", m.quota.Burst); err != nil || !d.Allowed {
			rt.Fatalf("what was reserved stays taken: %+v, %v", d, err)
		}
	})
}

func (m *mixOfWaits) run(l *limiter.Limiter) {
	var all sync.WaitGroup
	start := time.Now()
	for range rapid.IntRange(1, 60).Draw(m.T, "callers") {
		w := &wait{n: 1, came: time.Since(start)}
		if !m.one {
			w.n = rapid.Int64Range(1, m.quota.Burst).Draw(m.T, "n")
		}
		spans := []time.Duration{0, 20 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond, time.Second, 3 * time.Second}
		// Callers come and have their turns at even milliseconds, and leave at odd ones.
		if w.patience = rapid.SampledFrom(spans).Draw(m.T, "patience"); w.patience > 0 {
			w.patience += time.Millisecond
		}
		if w.deadline = rapid.SampledFrom(spans).Draw(m.T, "deadline"); w.deadline > 0 {
			w.deadline += 7 * time.Millisecond
		}
		m.waits = append(m.waits, w)
		all.Go(func() {
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			if w.patience > 0 {
				defer time.AfterFunc(w.patience, leave).Stop()
			}
			if w.deadline > 0 {
				var done context.CancelFunc
				ctx, done = context.WithTimeout(ctx, w.deadline)
				defer done()
			}
			w.err = l.WaitN(ctx, "k", w.n)
			w.returned = time.Since(start)
		})
		time.Sleep(time.Duration(rapid.IntRange(0, 60).Draw(m.T, "gap")) * 2 * time.Millisecond)
	}
	all.Wait()
}

// served returns the served calls by time.
func (m *mixOfWaits) served() []*wait {
	all := slices.DeleteFunc(slices.Clone(m.waits), func(w *wait) bool { return w.err != nil })
	slices.SortStableFunc(all, func(a, b *wait) int { return int(a.returned - b.returned) })
	return all
}

func (m *mixOfWaits) fail(format string, args ...any) {
	m.Helper()
	for _, w := range m.waits {
		m.Log(w)
	}
	m.Fatalf(format, args...)
}

// bounded fails if in some window more was admitted than the quota allows. Permits returned ahead
// of other reservations may be used in addition to them: on a remote backend, where a return takes
// time, and where waiters for different numbers of permits have their own lines.
func (m *mixOfWaits) bounded() {
	all, more := m.served(), int64(0)
	if m.trip > 0 || m.quota.Shape && !m.one {
		more = m.quota.Burst
	}
	for i := range all {
		sum := int64(0)
		for _, w := range all[i:] {
			sum += w.n
			span := w.returned - all[i].returned + m.trip
			most := m.quota.Burst + int64(span/(100*time.Millisecond))
			if m.quota.Algorithm == rules.SlidingLog {
				most = m.quota.Burst * (1 + int64(span/time.Second))
			}
			if sum > most+more {
				m.fail("%d were admitted in %v from %v, want at most %d", sum, span, all[i].returned, most+more)
			}
		}
	}
}

// inTime fails if a caller was refused late, or served after its deadline. On a remote backend it
// may be refused after a trip, or served after two, since it also returns permits. In a full queue,
// callers that want more or fewer permits may come first.
func (m *mixOfWaits) inTime() {
	sure := m.trip == 0 && (m.one || !m.quota.Shape)
	for _, w := range m.waits {
		var denied *limiter.DeniedError
		took := w.returned - w.came
		switch {
		case errors.As(w.err, &denied):
			if denied.RetryAfter <= 0 || w.deadline == 0 || sure && took > 0 {
				m.fail("%v", w)
			}
		case w.err == nil && w.deadline > 0 && took > w.deadline+2*m.trip:
			m.fail("%v", w)
		case sure && errors.Is(w.err, context.DeadlineExceeded):
			m.fail("%v: want it to be refused at once", w)
		}
	}
}

// busy fails if a permit is lost while someone waits.
func (m *mixOfWaits) busy() {
	type event struct {
		at     time.Duration
		change int
	}
	var events []event
	for _, w := range m.waits {
		if w.returned > w.came {
			events = append(events, event{w.came, 1}, event{w.returned, -1})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return b.change - a.change
	})
	waiting, from := 0, time.Duration(0)
	for _, e := range events {
		if waiting == 0 {
			from = e.at
		}
		waiting += e.change
		if waiting > 0 {
			continue
		}
		served := int64(0)
		for _, w := range m.served() {
			if w.returned > from && w.returned <= e.at {
				served++
			}
		}
		least := int64((e.at - from) / (100 * time.Millisecond))
		if m.quota.Algorithm == rules.SlidingLog {
			least = m.quota.Burst * (int64((e.at-from)/time.Second) - 1)
		}
		if served < least {
			m.fail("somebody waited from %v to %v, and %d were served, want %d", from, e.at, served, least)
		}
	}
}
