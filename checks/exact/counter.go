package exact

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Counter keeps the time of every count of every key. Times are nanoseconds since 1970 and come
// in order, except where the caller wants only the bound of [LogResult.May].
type Counter struct {
	rule        RuleSpec
	keys        map[string]*countSeries
	exceptions  map[string]*ExceptionSpec // exceptions by the keys seen so far
	first, last int64
	cells       map[int64]*paneCounts // cells by pane width; emptied by each Add
}

// NewCounter returns an empty counter.
func NewCounter(r RuleSpec) *Counter {
	return &Counter{rule: r, keys: make(map[string]*countSeries), exceptions: make(map[string]*ExceptionSpec), cells: make(map[int64]*paneCounts), first: math.MaxInt64, last: math.MinInt64}
}

// Tick records the time of a request, whether or not it counts a key: it moves the log's clock.
func (c *Counter) Tick(instant int64) { c.first, c.last = min(c.first, instant), max(c.last, instant) }

// Add counts n for a key, unless an exception excludes the key from counting.
func (c *Counter) Add(instant int64, key string, n int64) {
	s := c.keys[key]
	if s == nil {
		if x := c.exceptionOf(key); x != nil && x.Action != "" {
			return
		}
		s = &countSeries{}
		c.keys[key] = s
	}
	s.add(instant, n)
	clear(c.cells)
}

// HotChange is a key that became hot, or cooled.
type HotChange struct {
	Key string
	Hot bool
	At  int64 // time of the request that reached the threshold, or the end of the pane that decided
	// Low and High bound the count in the window. A High of -1 means unknown. They are equal in
	// expected events.
	Low, High int64
	Rule      string // id of the rule; not compared
	// Threshold is the name of the threshold that made the key hot, or was the last to hold it.
	Threshold string
}

// LogResult is the exact result of a log under a rule.
type LogResult struct {
	Rule   RuleSpec
	Keys   int
	Events map[string][]HotChange // each key's events, in order
	Must   map[string]bool        // keys that reach a threshold in the panes of a window
	May    map[string]bool        // keys that reach a sole rate in any half-open window; otherwise the same as Must
}

// Result returns the exact result of the counts so far.
func (c *Counter) Result() LogResult {
	r := LogResult{Rule: c.rule, Keys: len(c.keys), Events: make(map[string][]HotChange), Must: make(map[string]bool), May: make(map[string]bool)}
	for _, s := range c.keys {
		s.finish()
	}
	decisionsOf := make(map[string][]thresholdStep)
	views := c.rule.views()
	for i, t := range c.rule.Hot {
		addSteps := func(steps []step) {
			for _, s := range steps {
				decisionsOf[s.key] = append(decisionsOf[s.key], thresholdStep{s, views[i], i})
			}
		}
		if t.atPaneEnds() {
			addSteps(c.stepsTogether(t))
			continue
		}
		for key, s := range c.keys {
			if t := t.under(c.exceptionOf(key)); s.total() >= t.N {
				addSteps(c.stepsAlone(t, key, s))
			}
		}
	}
	for key, decisions := range decisionsOf {
		r.Must[key], r.Events[key] = true, mergeDecisions(decisions)
	}
	r.May = r.Must
	if len(c.rule.Hot) == 1 && c.rule.Hot[0].Kind == "rate" {
		r.May = make(map[string]bool)
		for key, s := range c.keys {
			if c.rule.Hot[0].under(c.exceptionOf(key)).reaches(s) {
				r.May[key] = true
			}
		}
	}
	return r
}

func (c *Counter) exceptionOf(key string) *ExceptionSpec {
	if len(c.rule.Except) == 0 {
		return nil
	}
	x, known := c.exceptions[key]
	if !known {
		x = c.rule.exception(key)
		c.exceptions[key] = x
	}
	return x
}

// reaches reports whether some half-open window of D holds N.
func (t ThresholdSpec) reaches(s *countSeries) bool {
	for _, instant := range s.times {
		if s.sumBetween(instant+1-int64(t.D), instant+1) >= t.N {
			return true
		}
	}
	return false
}

// Seconds returns the time from the first request to the last.
func (c *Counter) Seconds() float64 { return time.Duration(c.last - c.first).Seconds() }

// Needs returns a key's needs under one of the rule's thresholds and its count. The window ends
// with the pane that begins at start.
func (c *Counter) Needs(threshold int, key string, start int64) (n Needs, count int64) {
	t := c.rule.Hot[threshold].under(c.exceptionOf(key))
	s := c.keys[key]
	last := start / NewWindow(t.D).Width
	count = s.sumBetween(NewWindow(t.D).Span(last))
	switch {
	case t.Kind == "jump":
		return t.jumpNeeds(s, c.first, last), count
	case !t.atPaneEnds():
		return t.ownNeeds(), count
	}
	w := newSliding(c, t)
	for pane, ok := w.first(); ok && pane <= last; pane, ok = w.next(true) {
		if pane == last {
			return w.needs(t, slices.Index(w.keys, key), w.ranking(t)), count
		}
	}
	panic(fmt.Sprintf("exact: no pane at %d", start))
}

// views returns a number for each threshold's window. Equal windows share the number of the first
// threshold that has it.
func (r RuleSpec) views() (views []int) {
	for i, t := range r.Hot {
		same := slices.IndexFunc(r.Hot[:i], func(o ThresholdSpec) bool { return NewWindow(o.D) == NewWindow(t.D) })
		if same >= 0 {
			views = append(views, views[same])
		} else {
			views = append(views, i)
		}
	}
	return views
}

// thresholdStep is a step of one of a rule's thresholds.
type thresholdStep struct {
	step
	view, number int
}

// mergeDecisions merges a key's steps under all thresholds: the key is hot while at least one
// threshold holds it. At the same instant, decisions at a pane's end precede those by counts and
// are ordered by window. Within a window the steps to hot come before the steps to cool.
func mergeDecisions(all []thresholdStep) (events []HotChange) {
	order := func(a, b thresholdStep) int {
		return cmp.Or(cmp.Compare(a.instant, b.instant), -compareBool(a.atPaneEnd, b.atPaneEnd), cmp.Compare(a.view, b.view), -compareBool(a.hot, b.hot), cmp.Compare(a.number, b.number))
	}
	slices.SortStableFunc(all, order)
	hots := 0
	for i, d := range all {
		if d.hot {
			if hots++; hots == 1 {
				events = append(events, d.toEvent())
			}
			continue
		}
		hots--
		if hots > 0 {
			continue
		}
		if next := i + 1; next < len(all) && !all[next].hot && all[next].instant == d.instant && all[next].view == d.view {
			panic("exact: a key cools twice")
		}
		events = append(events, d.toEvent())
	}
	return events
}

func (d thresholdStep) toEvent() HotChange {
	return HotChange{Key: d.key, Hot: d.hot, At: d.instant, Low: d.count, High: d.count, Threshold: d.threshold}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// HotKeys returns the keys that became hot in events, sorted.
func HotKeys(events []HotChange) []string {
	var keys []string
	for _, e := range events {
		if e.Hot {
			keys = append(keys, e.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Missing returns the keys that must be hot and are not in hot, which is sorted.
func (r LogResult) Missing(hot []string) (missing []string) {
	for key := range r.Must {
		if _, found := slices.BinarySearchFunc(hot, key, cmp.Compare[string]); !found {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	return missing
}

// False returns the keys in hot that never reached the threshold.
func (r LogResult) False(hot []string) (wrong []string) {
	for _, key := range hot {
		if !r.May[key] {
			wrong = append(wrong, key)
		}
	}
	return wrong
}
