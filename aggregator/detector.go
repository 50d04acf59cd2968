package aggregator

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam"
)

// Publisher takes what the detector finds. Both methods are called from several
// goroutines and must neither block nor keep the slices.
type Publisher interface {
	// Publish takes a change of the hot set.
	Publish(hotparam.Change)
	// Refresh takes the present counts of keys that are hot.
	Refresh([]hotparam.Hot)
}

// DetectorConfig is what a [Detector] needs; Rules and Publisher are required.
type DetectorConfig struct {
	Rules     *hotparam.Rules
	Publisher Publisher
	// Memory is how many bytes the windows may hold, shared evenly by the
	// rules; 0 is [DefaultMemory].
	Memory int64
	// Grace is how much later than a window counts may come and still be
	// placed; 0 is [DefaultGrace].
	Grace time.Duration
	// Lag is how long counts are on their way: a key cools by what is known of
	// the time before the lag. 0 is for callers that bring counts in order.
	Lag time.Duration
}

// Defaults of a detector and of the daemon.
const (
	DefaultMemory = 64 << 20
	DefaultGrace  = 2 * time.Second
	DefaultLag    = 250 * time.Millisecond
)

// Detector tells which keys are hot. It evaluates a key's rule on every count:
// a key is hot when what was reported of some window reaches the threshold. It
// cools when what could have been counted in a whole window is below the exit,
// and it has been hot for the hold. A Detector is used by one goroutine.
type Detector struct {
	publisher Publisher
	rules     []*ruleWindow // by rule number; nil for rules without a threshold
	lag       time.Duration
}

type ruleWindow struct {
	rule   *hotparam.Rule
	window *window
	hot    []int32 // entries
	closed int64   // newest pane that is over and has been looked at
}

// hotState is what an entry that is hot adds.
type hotState struct {
	since time.Time
	hold  time.Time // does not cool before
}

// NewDetector makes a detector.
func NewDetector(c DetectorConfig) *Detector {
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	d := &Detector{publisher: c.Publisher, lag: c.Lag, rules: make([]*ruleWindow, len(c.Rules.Rules))}
	hot := int64(0)
	for i := range c.Rules.Rules {
		if c.Rules.Rules[i].Hot != nil {
			hot++
		}
	}
	for i := range c.Rules.Rules {
		rule := &c.Rules.Rules[i]
		if rule.Hot == nil {
			continue
		}
		w := rule.Hot.Window()
		// One pane more: the window that is looked at ends before the pane that
		// was the present one a lag ago.
		grace := int64((max(c.Grace, c.Lag)+w.Pane-1)/w.Pane) + 1
		d.rules[i] = &ruleWindow{rule: rule, window: newWindow(w, grace, c.Memory/hot), closed: never}
	}
	return d
}

// Count implements [Handler].
func (d *Detector) Count(c Count) {
	r := d.rules[c.Rule]
	if r == nil {
		return
	}
	i, low, end := r.window.add(c.Hash, c.Text, r.window.Index(c.When), c.N)
	if i < 0 || low < r.rule.Hot.Rate.N {
		return
	}
	e, _ := r.window.at(i)
	if e.hot != nil {
		return
	}
	// However short the hold, no window from before the one that made the key hot
	// can cool it.
	hold := c.When.Add(r.rule.Hot.Hold)
	if over := r.window.Start(end + 1); hold.Before(over) {
		hold = over
	}
	e.hot = &hotState{since: c.When, hold: hold}
	r.hot = append(r.hot, i)
	h := r.describe(i, end)
	h.Low = low
	d.publisher.Publish(hotparam.Change{Hot: []hotparam.Hot{h}})
}

// Hidden implements [Handler].
func (d *Detector) Hidden(when time.Time, n int64) {
	for _, r := range d.rules {
		if r != nil {
			r.window.conceal(r.window.Index(when), n)
		}
	}
}

// Lost implements [Handler].
func (d *Detector) Lost(when time.Time) {
	for _, r := range d.rules {
		if r != nil {
			r.window.lose(r.window.Index(when))
		}
	}
}

// Advance tells what time it is: panes that are over by the lag are closed, and
// the keys that are hot no longer cool.
func (d *Detector) Advance(now time.Time) {
	for _, r := range d.rules {
		if r == nil {
			continue
		}
		if pane := r.window.Index(now); pane <= r.window.now-r.window.ring && r.window.now != never {
			d.restart(r, now)
		}
		r.window.advance(r.window.Index(now))
		over := r.window.Index(now.Add(-d.lag)) - 1
		if len(r.hot) > 0 && r.closed != never {
			for pane := r.closed + 1; pane <= over && len(r.hot) > 0; pane++ {
				d.cool(r, pane)
			}
		}
		r.closed = max(r.closed, over)
	}
}

// restart begins anew after the clock was set back by more than a window: all
// that comes would count as late until the clock is again where it was.
func (d *Detector) restart(r *ruleWindow, now time.Time) {
	var change hotparam.Change
	for _, i := range r.hot {
		h := r.describe(i, r.closed)
		h.Until = now
		change.Cool = append(change.Cool, h)
	}
	r.window, r.hot, r.closed = r.window.restart(), nil, never
	if !change.Empty() {
		d.publisher.Publish(change)
	}
}

// cool publishes the keys that stopped being hot when a pane was over.
func (d *Detector) cool(r *ruleWindow, pane int64) {
	end := r.window.Start(pane + 1)
	var change hotparam.Change
	r.hot = slices.DeleteFunc(r.hot, func(i int32) bool {
		e, _ := r.window.at(i)
		if end.Before(e.hot.hold) {
			return false
		}
		h := r.describe(i, pane)
		if h.High == hotparam.Unknown || h.High >= r.rule.Hot.Exit {
			return false
		}
		h.Until = end
		change.Cool = append(change.Cool, h)
		e.hot = nil
		return true
	})
	if !change.Empty() {
		d.publisher.Publish(change)
	}
}

// Refresh publishes the present counts of the keys that are hot.
func (d *Detector) Refresh() {
	var hot []hotparam.Hot
	for _, r := range d.rules {
		if r == nil {
			continue
		}
		for _, i := range r.hot {
			// What came within the lag is not in the window that is over, and
			// what is on its way is not in the present one: the fuller one
			// tells more of both.
			h := r.describe(i, r.closed)
			if present := r.describe(i, r.window.now); present.Low > h.Low {
				h = present
			}
			hot = append(hot, h)
		}
	}
	if len(hot) > 0 {
		d.publisher.Refresh(hot)
	}
}

// describe is a hot key with its counts in the window that ends with a pane.
func (r *ruleWindow) describe(i int32, pane int64) hotparam.Hot {
	e, _ := r.window.at(i)
	low, high := r.window.bounds(i, pane)
	h := hotparam.Hot{
		Key:   hotparam.Key{Rule: r.rule.ID, Text: string(e.text)},
		Low:   low,
		High:  high,
		Rate:  float64(low) / r.rule.Hot.Rate.Per.Seconds(),
		Since: e.hot.since,
		Mode:  hotparam.ModeWatch,
	}
	if l := r.rule.Limit; l != nil {
		h.Limit, h.Burst, h.Mode = l.Rate, l.Burst, l.Mode
	}
	return h
}

// DetectorStats are a detector's figures.
type DetectorStats struct {
	Keys    int64 // keys with a count of their own
	Hot     int64 // keys that are hot
	Memory  int64 // bytes that the keys hold
	Evicted int64 // keys that made room for others
	Late    int64 // counts that came too late for any pane
	Floor   int64 // the most that can be hidden of any key, of all rules
}

// Stats tells the figures.
func (d *Detector) Stats() DetectorStats {
	var s DetectorStats
	for _, r := range d.rules {
		if r == nil {
			continue
		}
		s.Keys += int64(r.window.live)
		s.Hot += int64(len(r.hot))
		s.Memory += r.window.used()
		s.Evicted += r.window.evicted
		s.Late += r.window.late
		s.Floor = max(s.Floor, r.window.floor())
	}
	return s
}
