package exact

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// Threshold is when a key is hot: N counts within D; it cools below Exit, but
// not before Hold has passed, nor before it was so for CoolDown.
type Threshold struct {
	N, Exit           int64
	D, Hold, CoolDown time.Duration
}

// NewThreshold has the documented defaults: exit at 80%, hold of 10 s, cool-down
// of 5 s.
func NewThreshold(n int64, d time.Duration) Threshold {
	return Threshold{N: n, D: d, Exit: max(1, (n*4+4)/5), Hold: 10 * time.Second, CoolDown: 5 * time.Second}
}

func (t Threshold) pane() int64  { return max(int64(100*time.Millisecond), int64(t.D)/60) }
func (t Threshold) panes() int64 { return int64(t.D) / t.pane() }

// Counter keeps the time of every count of every key. Times are nanoseconds
// since 1970 and come in order, except where the caller wants only the bound
// of [Result.May].
type Counter struct {
	threshold   Threshold
	times       map[string][]int64
	first, last int64
}

// NewCounter is an empty counter.
func NewCounter(t Threshold) *Counter {
	return &Counter{threshold: t, times: make(map[string][]int64), first: math.MaxInt64, last: math.MinInt64}
}

// Tick notes a request, whether or not it counts a key: the log's clock moves.
func (c *Counter) Tick(at int64) { c.first, c.last = min(c.first, at), max(c.last, at) }

// Add counts a key.
func (c *Counter) Add(at int64, key string) { c.times[key] = append(c.times[key], at) }

// Event is a key that became hot, or cooled.
type Event struct {
	Key string
	Hot bool
	At  int64 // of the request that reached the threshold; the end of the pane that cooled
	// Low and High are bounds of the count in the window; High -1: unknown. In
	// what is expected they are equal.
	Low, High int64
}

// Result is what a replay must come to.
type Result struct {
	Threshold Threshold
	Keys      int
	Events    map[string][]Event // by key, in order
	Must      map[string]bool    // keys that reach the threshold in the panes of a window
	May       map[string]bool    // keys that reach it in some continuous half-open window
}

// Result is what the counts come to.
func (c *Counter) Result() Result {
	r := Result{Threshold: c.threshold, Keys: len(c.times), Events: make(map[string][]Event), Must: make(map[string]bool), May: make(map[string]bool)}
	for key, times := range c.times {
		if int64(len(times)) < c.threshold.N {
			continue
		}
		slices.Sort(times)
		if c.reaches(times) {
			r.May[key] = true
		}
		if events := c.follow(key, times); len(events) > 0 {
			r.Must[key], r.Events[key] = true, events
		}
	}
	return r
}

// reaches tells whether some half-open window of D holds N of the times.
func (c *Counter) reaches(times []int64) bool {
	n := int(c.threshold.N)
	for i := n - 1; i < len(times); i++ {
		if times[i]-times[i-n+1] < int64(c.threshold.D) {
			return true
		}
	}
	return false
}

// follow goes through a key's life.
func (c *Counter) follow(key string, times []int64) (events []Event) {
	pane, panes := c.threshold.pane(), c.threshold.panes()
	before := func(at int64) int64 { // how many times are before an instant
		return int64(sort.Search(len(times), func(i int) bool { return times[i] >= at }))
	}
	hot, since, next := false, int64(0), int64(0) // next: the pane that is looked at next
	below := int64(-1)                            // end of the first window below the exit of those in a row
	coolUntil := func(current int64) {            // panes before the current one are over
		for ; hot && next < current; next++ {
			end := (next + 1) * pane
			n := before(end) - before(end-panes*pane)
			switch {
			case n >= c.threshold.Exit:
				below = -1
			case below < 0:
				below = end
			}
			if below >= 0 && end >= since+int64(c.threshold.Hold) && end-below >= int64(c.threshold.CoolDown) {
				hot = false
				events = append(events, Event{Key: key, At: end, Low: n, High: n})
			}
		}
	}
	for i := 0; i < len(times); {
		at := times[i]
		for i < len(times) && times[i] == at {
			i++
		}
		index := at / pane
		coolUntil(index)
		n := int64(i) - before((index-panes+1)*pane)
		if !hot && n >= c.threshold.N {
			hot, since, next, below = true, at, index, -1
			events = append(events, Event{Key: key, Hot: true, At: at, Low: n, High: n})
		}
	}
	coolUntil(c.last / pane)
	return events
}

// Seconds is the time from the first request to the last.
func (c *Counter) Seconds() float64 { return time.Duration(c.last - c.first).Seconds() }

// HotKeys are the keys of the events that say hot, sorted.
func HotKeys(events []Event) []string {
	var keys []string
	for _, e := range events {
		if e.Hot {
			keys = append(keys, e.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Missing are the keys that must be hot and are not; False are those that are
// and never reached the threshold.
func (r Result) Missing(hot []string) (missing []string) {
	for key := range r.Must {
		if _, found := slices.BinarySearchFunc(hot, key, cmp.Compare[string]); !found {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	return missing
}

// False are the keys that are called hot and never reached the threshold.
func (r Result) False(hot []string) (wrong []string) {
	for _, key := range hot {
		if !r.May[key] {
			wrong = append(wrong, key)
		}
	}
	return wrong
}
