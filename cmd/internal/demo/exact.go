package demo

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// exact counts every request at the moment it arrives, with one lock for all instances. No real
// fleet could do so; the demo is measured against it. It knows when a key really crossed the
// threshold, and so the time until the limit was in force on the last instance. It keeps all keys
// that it ever saw, a few thousand in the demo's log.
type exact struct {
	threshold rules.Rate
	window    rules.Window

	mu               sync.Mutex
	keys             map[string]*exactKey
	force            []map[string]bool // keys that each instance limits
	allowed, limited int64
	waits            []time.Duration // times to enforce, in ascending order
	missed           int64
}

type exactKey struct {
	panes []int64     // counts of the window's panes
	over  []time.Time // time of the first request of each pane that found the key at its threshold
	last  int64       // newest pane
	sum   int64       // sum of the panes
	peak  int64       // highest sum

	force   int       // number of instances that limit it
	due     time.Time // time from which all instances should limit it; zero if they do or need not
	wasHot  bool
	limited int64
}

// edge is the tolerance at the edges of panes. Counts are placed by flushes, so a request within
// moments of a pane's edge may be found in the neighboring pane.
const (
	edge = 5 * time.Millisecond
	// patience is the longest time that a key may exceed its threshold without a limit.
	patience = 2 * time.Second
)

func newExact(t *rules.Threshold, instances int) *exact {
	e := &exact{threshold: t.Rate, window: t.Window(), keys: make(map[string]*exactKey)}
	for range instances {
		e.force = append(e.force, nil)
	}
	return e
}

func (e *exact) key(text string) *exactKey {
	k := e.keys[text]
	if k == nil {
		k = &exactKey{panes: make([]int64, e.window.Panes), over: make([]time.Time, e.window.Panes)}
		e.keys[text] = k
	}
	return k
}

// arrived records a request for the key with this text.
func (e *exact) arrived(text string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k, pane, n := e.key(text), e.window.Index(now), int64(e.window.Panes)
	k.roll(pane)
	k.panes[k.last%n]++
	k.sum++
	k.peak = max(k.peak, k.sum)
	if k.sum < e.threshold.N {
		return
	}
	if over := &k.over[k.last%n]; over.IsZero() {
		*over = now
	}
	e.overdue(k, now)
	// Without the oldest pane, the key exceeds the threshold wherever the flushes place the
	// requests near an edge: it must become hot now.
	if k.due.IsZero() && k.force < len(e.force) && k.sum-k.panes[(k.last+1)%n] >= e.threshold.N {
		k.due = now
	}
}

// roll advances k to a newer pane. Requests may take the lock in another order than they take the
// time, so pane may also be older. The request then counts in the newest pane.
func (k *exactKey) roll(pane int64) {
	n := int64(len(k.panes))
	k.last = max(k.last, pane-n)
	for k.last < pane {
		k.last++
		k.sum -= k.panes[k.last%n]
		k.panes[k.last%n], k.over[k.last%n] = 0, time.Time{}
	}
}

// overdue counts a key that has gone without its limit for too long.
func (e *exact) overdue(k *exactKey, now time.Time) {
	if !k.due.IsZero() && now.Sub(k.due) > patience {
		e.missed++
		k.due = time.Time{}
	}
}

// passed and refused record the answer to a request.
func (e *exact) passed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allowed++
}

func (e *exact) refused(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limited++
	e.key(text).limited++
}

// inForce records the keys that an instance limits from now on.
func (e *exact) inForce(instance int, hot []middleware.HotKey, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, in := e.force[instance], make(map[string]bool, len(hot))
	for _, h := range hot {
		in[h.Text] = true
		if before[h.Text] {
			continue
		}
		k := e.key(h.Text)
		k.wasHot = true
		if k.force++; k.force == len(e.force) {
			k.due = time.Time{}
			e.enforced(now.Sub(e.crossing(k, h.Since)))
		}
	}
	for text := range before {
		if !in[text] {
			e.keys[text].force--
		}
	}
	e.force[instance] = in
}

// crossing returns the arrival time of the request that made a key hot, whose count was placed in
// the pane of since. A flush that comes moments late may place a count in the pane before its
// own, but never in an earlier one.
func (e *exact) crossing(k *exactKey, since time.Time) time.Time {
	n := int64(len(k.panes))
	pane := e.window.Index(since)
	for p := pane - 1; p <= pane+1; p++ {
		if p <= k.last-n || p > k.last {
			continue // dropped already, or in the future
		}
		if crossed := k.over[p%n]; !crossed.IsZero() && !crossed.Before(since.Add(-edge)) {
			return crossed
		}
	}
	return since // prefer a wait that is too long over none
}

func (e *exact) enforced(wait time.Duration) {
	i, _ := slices.BinarySearch(e.waits, wait)
	e.waits = slices.Insert(e.waits, i, wait)
}

// Percentiles are in milliseconds. They are nil if there are no samples.
type Percentiles struct {
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`
}

// percentiles returns the percentiles of the times to enforce.
func (e *exact) percentiles() Percentiles {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Percentiles{P50: percentile(e.waits, 50), P99: percentile(e.waits, 99)}
}

// percentile returns the nearest-rank percentile, in milliseconds with one decimal.
func percentile(sorted []time.Duration, p int) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	rank := (len(sorted)*p + 99) / 100
	ms := float64(sorted[rank-1].Round(100*time.Microsecond)) / float64(time.Millisecond)
	return &ms
}

// answers returns the numbers of passed and of refused requests.
func (e *exact) answers() (allowed, limited int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.allowed, e.limited
}

// settle ends the measurement when the traffic has ended. It counts the keys that have
// gone without their limit for too long, and drops the deadlines of the others.
func (e *exact) settle(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range e.keys {
		e.overdue(k, now)
		k.due = time.Time{}
	}
}

// unenforced returns how often a key went over its threshold and was not limited by all instances
// within patience.
func (e *exact) unenforced() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.missed
}

// hot returns the keys that at least one instance has limited, highest peak first.
func (e *exact) hot() []HotResult {
	e.mu.Lock()
	defer e.mu.Unlock()
	hot := []HotResult{} // encoded in JSON as an array even if empty
	for text, k := range e.keys {
		if k.wasHot {
			rate := float64(k.peak) / e.threshold.Per.Seconds()
			hot = append(hot, HotResult{Key: text, PeakRate: rate, Limited: k.limited})
		}
	}
	slices.SortFunc(hot, func(a, b HotResult) int {
		return cmp.Or(cmp.Compare(b.PeakRate, a.PeakRate), cmp.Compare(b.Limited, a.Limited), cmp.Compare(a.Key, b.Key))
	})
	return hot
}
