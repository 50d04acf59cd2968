package aggregator

import (
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
)

// exact is what a detector must tell while its memory suffices: it keeps every
// count as it came, and adds up panes where it needs a sum.
type exact struct {
	rules  *hotparam.Rules
	lag    time.Duration
	counts map[exactKey][]stamped
	hidden []stamped
	lost   []time.Time
	hot    [][]exactHot // by rule, in the order in which they became hot
	closed []int64      // by rule: newest pane that has been looked at
	newest []int64      // by rule: newest pane, by the clock or by a count
	events []string
}

type exactKey struct {
	rule int
	text string
}

type stamped struct {
	when time.Time
	n    int64
}

type exactHot struct {
	text string
	hold time.Time
}

func newExact(rules *hotparam.Rules, lag time.Duration) *exact {
	x := &exact{
		rules:  rules,
		lag:    lag,
		counts: make(map[exactKey][]stamped),
		hot:    make([][]exactHot, len(rules.Rules)),
		closed: make([]int64, len(rules.Rules)),
		newest: make([]int64, len(rules.Rules)),
	}
	for i := range x.closed {
		x.closed[i], x.newest[i] = never, never
	}
	return x
}

// sumPanes is what was counted in the panes of the window that ends with last.
func sumPanes(w hotparam.Window, counts []stamped, last int64) (sum int64) {
	for _, c := range counts {
		if pane := w.Index(c.when); pane <= last && pane > last-int64(w.Panes) {
			sum += c.n
		}
	}
	return sum
}

// continuous is the most that was counted in any half-open time of length d.
func continuous(d time.Duration, counts []stamped) (most int64) {
	for _, from := range counts {
		sum := int64(0)
		for _, c := range counts {
			if !c.when.Before(from.when) && c.when.Before(from.when.Add(d)) {
				sum += c.n
			}
		}
		most = max(most, sum)
	}
	return most
}

func (x *exact) count(rule int, text string, when time.Time, n int64) {
	key := exactKey{rule, text}
	x.counts[key] = append(x.counts[key], stamped{when, n})
	threshold := x.rules.Rules[rule].Hot
	x.newest[rule] = max(x.newest[rule], threshold.Window().Index(when))
	if x.isHot(rule, text) {
		return
	}
	if low, over := x.low(rule, text, when); low >= threshold.Rate.N {
		hold := when.Add(threshold.Hold)
		if hold.Before(over) {
			hold = over
		}
		x.hot[rule] = append(x.hot[rule], exactHot{text, hold})
		x.events = append(x.events, hotEvent(x.rules.Rules[rule].ID, text, when, low))
	}
}

// low is the highest count of a window that holds the pane of when, and when
// that window is over.
func (x *exact) low(rule int, text string, when time.Time) (low int64, over time.Time) {
	w := x.rules.Rules[rule].Hot.Window()
	pane := w.Index(when)
	for last := pane; last < pane+int64(w.Panes); last++ {
		if sum := sumPanes(w, x.counts[exactKey{rule, text}], last); sum > low {
			low, over = sum, w.Start(last+1)
		}
	}
	return low, over
}

func (x *exact) isHot(rule int, text string) bool {
	return slices.ContainsFunc(x.hot[rule], func(h exactHot) bool { return h.text == text })
}

func (x *exact) advance(now time.Time) {
	for i := range x.rules.Rules {
		w := x.rules.Rules[i].Hot.Window()
		x.newest[i] = max(x.newest[i], w.Index(now))
		over := w.Index(now.Add(-x.lag)) - 1
		if x.closed[i] != never {
			for pane := x.closed[i] + 1; pane <= over && len(x.hot[i]) > 0; pane++ {
				x.cool(i, w, pane)
			}
		}
		x.closed[i] = max(x.closed[i], over)
	}
}

func (x *exact) cool(i int, w hotparam.Window, pane int64) {
	rule := &x.rules.Rules[i]
	end := w.Start(pane + 1)
	x.hot[i] = slices.DeleteFunc(x.hot[i], func(h exactHot) bool {
		low := sumPanes(w, x.counts[exactKey{i, h.text}], pane)
		high := low + sumPanes(w, x.hidden, pane)
		if end.Before(h.hold) || high >= rule.Hot.Exit || x.lostIn(w, pane) {
			return false
		}
		x.events = append(x.events, coolEvent(rule.ID, h.text, end, low, high))
		return true
	})
}

// lostIn tells whether the window that ends with last, or what came after it,
// holds a loss.
func (x *exact) lostIn(w hotparam.Window, last int64) bool {
	return slices.ContainsFunc(x.lost, func(t time.Time) bool { return w.Index(t) > last-int64(w.Panes) })
}

func hotEvent(rule, text string, since time.Time, low int64) string {
	return fmt.Sprintf("%s %s hot since %d, low %d", rule, text, since.UnixNano(), low)
}

func coolEvent(rule, text string, until time.Time, low, high int64) string {
	return fmt.Sprintf("%s %s cool at %d, low %d, high %d", rule, text, until.UnixNano(), low, high)
}

// events are a recorder's changes in the words of the model.
func (r *recorder) events() (events []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		for _, h := range c.Hot {
			events = append(events, hotEvent(h.Rule, h.Text, h.Since, h.Low))
		}
		for _, h := range c.Cool {
			events = append(events, coolEvent(h.Rule, h.Text, h.Until, h.Low, h.High))
		}
	}
	return events
}
