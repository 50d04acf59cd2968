package aggregator

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// exact is the reference for a detector with enough memory. It keeps every count as it came, and
// adds up panes where it needs a sum.
type exact struct {
	rules  *rules.Rules
	lag    time.Duration
	counts map[exactKey][]stamped
	again  map[exactKey][]stamped // repeats, to be subtracted from a group's total
	hidden []stamped
	lost   []time.Time
	began  time.Time // first time of the clock
	hot    [][]*exactHot
	closed map[rules.Window]int64 // newest pane that has been looked at
	newest []time.Time            // newest count of each rule
	now    time.Time
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

// exactHot is a hot key, exactMark its state at one threshold of its rule.
type exactHot struct {
	text  string
	by    int
	marks []exactMark
}

type exactMark struct {
	hot               bool
	need              int64 // the count that made it hot
	over, hold, below time.Time
}

func newExact(ruleset *rules.Rules, lag time.Duration) *exact {
	return &exact{
		rules: ruleset, lag: lag, counts: make(map[exactKey][]stamped), again: make(map[exactKey][]stamped), closed: make(map[rules.Window]int64),
		hot: make([][]*exactHot, len(ruleset.Rules)), newest: make([]time.Time, len(ruleset.Rules)),
	}
}

// sumPanes returns the sum of the counts in the window that ends with last.
func sumPanes(w rules.Window, counts []stamped, last int64) int64 {
	return sumBetween(w, counts, last-int64(w.Panes)+1, last)
}

// sumBetween returns the sum of the counts in the panes from first to last.
func sumBetween(w rules.Window, counts []stamped, first, last int64) (sum int64) {
	for _, c := range counts {
		if pane := w.Index(c.when); first <= pane && pane <= last {
			sum += c.n
		}
	}
	return sum
}

// continuous returns the highest sum of counts in any half-open interval of length d.
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

func whole(n int64) *big.Rat { return big.NewRat(n, 1) }

// atLeast returns the least whole number that is not below a product.
func atLeast(factors ...*big.Rat) int64 {
	p := big.NewRat(1, 1)
	for _, f := range factors {
		p.Mul(p, f)
	}
	n := new(big.Int).Div(new(big.Int).Sub(new(big.Int).Add(p.Num(), p.Denom()), big.NewInt(1)), p.Denom())
	return n.Int64()
}

// exactNeeds are the counts that a key needs to become and to stay hot. They are unknown if it
// cannot be decided whether the key is hot.
type exactNeeds struct {
	enter, exit int64
	unknown     bool
}

// needs returns the counts that a key needs for a threshold in the window that ends with last.
func (x *exact) needs(rule, number int, text string, last int64) exactNeeds {
	r := &x.rules.Rules[rule]
	t := &r.Hot[number]
	w := t.Window()
	factor, exit := big.NewRat(t.Factor.Num, max(1, t.Factor.Den)), big.NewRat(t.Exit.Num, t.Exit.Den)
	n := exactNeeds{enter: t.Rate.N, exit: max(1, atLeast(exit, whole(t.Rate.N)))}
	compare := func(low, high *big.Rat) {
		n.enter = max(n.enter, atLeast(factor, high))
		n.exit = max(n.exit, atLeast(exit, factor, low))
	}
	if e := r.Exception(text); e != nil {
		if e.Action == rules.Allow {
			return exactNeeds{enter: math.MaxInt64, exit: math.MaxInt64}
		}
		if t.Kind == rules.FixedRate && e.Rate.Per == t.Rate.Per {
			n = exactNeeds{enter: e.Rate.N, exit: max(1, atLeast(exit, whole(e.Rate.N)))}
		}
	}
	switch t.Kind {
	case rules.Share:
		totals := make(map[string]int64) // by group
		for key, counts := range x.counts {
			if key.rule == rule {
				totals[exactGroup(key.text)] += sumPanes(w, counts, last)
			}
		}
		for key, counts := range x.again {
			if key.rule == rule {
				totals[key.text] = max(0, totals[key.text]-sumPanes(w, counts, last))
			}
		}
		total := totals[exactGroup(text)]
		if strings.HasSuffix(text, "?~more") || strings.HasSuffix(text, "~unread") { // of all requests on the route
			total = 0
			for group, n := range totals {
				if group != exactGroup("GET /s?~more") && strings.HasPrefix(group, "GET /s ") {
					total += n
				}
			}
		}
		compare(whole(total), whole(total+sumPanes(w, x.hidden, last)))
		n.unknown = x.lostIn(w, last)
	case rules.Jump:
		low, high, ok := x.baseline(w, exactKey{rule, text}, last)
		compare(low, high)
		n.unknown = !ok
	case rules.Top:
		x.rank(&n, rule, t, text, last)
	}
	return n
}

// exactGroup returns a text without its values.
func exactGroup(text string) string {
	route, query, _ := strings.Cut(text, "?")
	for param := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(param, "=")
		route += " " + name
	}
	return route
}

// baseline returns the bounds of a key's mean count per window. It covers the ten windows before
// the present one, or as much of them as was seen whole and without loss. The mean is known to
// about a tenth of a window at its old end.
func (x *exact) baseline(w rules.Window, key exactKey, last int64) (low, high *big.Rat, ok bool) {
	panes := int64(w.Panes)
	step := (panes + 9) / 10
	to := last - panes
	from := max(to-10*panes+1, w.Index(x.began)+1)
	for _, t := range x.lost {
		from = max(from, w.Index(t)+1)
	}
	if to-from+1 < panes {
		return whole(0), whole(0), false
	}
	per := big.NewRat(panes, to-from+1)
	mean := func(n int64) *big.Rat { return new(big.Rat).Mul(whole(n), per) }
	down := func(pane int64) int64 { return int64(math.Floor(float64(pane) / float64(step))) }
	outer := sumBetween(w, x.counts[key], down(from)*step, to)
	inner := sumBetween(w, x.counts[key], down(from+step-1)*step, down(to+1)*step-1)
	outer += sumBetween(w, x.hidden, down(from)*step, (down(to)+1)*step-1)
	return mean(inner), mean(outer), true
}

// rank raises a key's needed count above the highest counts of the other keys.
func (x *exact) rank(n *exactNeeds, rule int, t *rules.Threshold, text string, last int64) {
	w := t.Window()
	hidden := sumPanes(w, x.hidden, last)
	var others []int64
	for key, counts := range x.counts {
		if sum := sumPanes(w, counts, last); key.rule == rule && key.text != text && sum >= t.Rate.N {
			others = append(others, sum)
		}
	}
	slices.SortFunc(others, func(a, b int64) int { return int(b - a) })
	if hidden > 0 {
		n.enter = max(n.enter, t.Rate.N+hidden)
	}
	if len(others) >= t.Top {
		rival := others[t.Top-1]
		n.enter = max(n.enter, rival+hidden+1)
		n.exit = max(n.exit, atLeast(big.NewRat(t.Exit.Num, t.Exit.Den), whole(rival)))
	}
	n.unknown = x.lostIn(w, last) && (len(others) > 0 || sumPanes(w, x.counts[exactKey{rule, text}], last) >= t.Rate.N)
}

func (x *exact) find(rule int, text string) *exactHot {
	for _, h := range x.hot[rule] {
		if h.text == text {
			return h
		}
	}
	return nil
}

// count adds counts of a key. Thresholds that compare with no other key are checked at once.
func (x *exact) count(rule int, text string, when time.Time, n int64) {
	key := exactKey{rule, text}
	isShare := func(t rules.Threshold) bool { return t.Kind == rules.Share }
	if group := strings.Replace(text, "?~again&", "?", 1); group != text && slices.ContainsFunc(x.rules.Rules[rule].Hot, isShare) {
		key.text = exactGroup(group)
		x.again[key] = append(x.again[key], stamped{when, n})
		return
	}
	x.counts[key] = append(x.counts[key], stamped{when, n})
	if x.newest[rule].IsZero() || when.After(x.newest[rule]) {
		x.newest[rule] = when
	}
	for i, t := range x.inOrder(rule) {
		if t.Kind != rules.FixedRate && t.Kind != rules.Jump {
			continue
		}
		w := t.Window()
		low, last := x.low(w, key, when)
		if need := x.needs(rule, i, text, last); !need.unknown && low >= need.enter {
			x.enter(rule, i, text, when, w.Start(last+1), low, need.enter)
		}
	}
}

// inOrder yields the thresholds of a rule with their numbers, grouped by window.
func (x *exact) inOrder(rule int) func(func(int, *rules.Threshold) bool) {
	hot := x.rules.Rules[rule].Hot
	return func(yield func(int, *rules.Threshold) bool) {
		for _, w := range windowsOf(hot) {
			for i := range hot {
				if hot[i].Window() == w && !yield(i, &hot[i]) {
					return
				}
			}
		}
	}
}

// windowsOf returns the distinct windows of thresholds.
func windowsOf(hot []rules.Threshold) (windows []rules.Window) {
	for i := range hot {
		if w := hot[i].Window(); !slices.Contains(windows, w) {
			windows = append(windows, w)
		}
	}
	return windows
}

// low returns the highest count of a window that contains the pane of when, and the last pane of
// that window.
func (x *exact) low(w rules.Window, key exactKey, when time.Time) (low, end int64) {
	pane := w.Index(when)
	for last := pane; last < pane+int64(w.Panes); last++ {
		if sum := sumPanes(w, x.counts[key], last); sum > low {
			low, end = sum, last
		}
	}
	return low, end
}

func (x *exact) enter(rule, number int, text string, when, over time.Time, low, need int64) {
	h := x.find(rule, text)
	if h == nil {
		h = &exactHot{text: text, by: number, marks: make([]exactMark, len(x.rules.Rules[rule].Hot))}
		x.hot[rule] = append(x.hot[rule], h)
		x.events = append(x.events, hotEvent(x.rules.Rules[rule].ID, text, when, low, float64(low)/float64(need)))
	}
	if m := &h.marks[number]; !m.hot {
		*m = exactMark{hot: true, need: need, over: over, hold: when.Add(x.rules.Rules[rule].Hot[number].Hold)}
	}
}

// advance closes panes in the order in which they end.
func (x *exact) advance(now time.Time) { x.advanceTo(now, now.Add(-x.lag)) }

func (x *exact) advanceTo(now, complete time.Time) {
	if x.began.IsZero() {
		x.began = now
	}
	x.now = now
	for i := range x.rules.Rules {
		for {
			var next rules.Window
			found := false
			for _, w := range windowsOf(x.rules.Rules[i].Hot) {
				closed, begun := x.closedOf(i, w)
				over := w.Index(complete) - 1
				quiet := len(x.hot[i]) == 0 && (x.newest[i].IsZero() || closed >= w.Index(x.newest[i])+int64(w.Panes))
				if !begun || quiet {
					x.setClosed(i, w, max(closed, over))
					continue
				}
				if c, _ := x.closedOf(i, next); closed < over && (!found || w.Start(closed+2).Before(next.Start(c+2))) {
					next, found = w, true
				}
			}
			if !found {
				break
			}
			pane, _ := x.closedOf(i, next)
			x.setClosed(i, next, pane+1)
			x.close(i, next, pane+1)
		}
	}
}

// closedOf returns the newest closed pane of a rule's window. The number of the rule is added to
// the number of panes, which keeps the map's key unique.
func (x *exact) closedOf(rule int, w rules.Window) (int64, bool) {
	w.Panes += 1000 * rule
	closed, ok := x.closed[w]
	if !ok {
		return ring.Never, false
	}
	return closed, true
}

func (x *exact) setClosed(rule int, w rules.Window, pane int64) {
	w.Panes += 1000 * rule
	x.closed[w] = pane
}

func (x *exact) close(rule int, w rules.Window, pane int64) {
	end := w.Start(pane + 1)
	hot := x.rules.Rules[rule].Hot
	var texts []string
	for key := range x.counts {
		if key.rule == rule {
			texts = append(texts, key.text)
		}
	}
	slices.Sort(texts)
	for _, text := range texts {
		for i := range hot {
			if hot[i].Window() != w || hot[i].Kind != rules.Share && hot[i].Kind != rules.Top {
				continue
			}
			low := sumPanes(w, x.counts[exactKey{rule, text}], pane)
			if need := x.needs(rule, i, text, pane); !need.unknown && low >= need.enter {
				x.enter(rule, i, text, end, end, low, need.enter)
			}
		}
	}
	x.hot[rule] = slices.DeleteFunc(x.hot[rule], func(h *exactHot) bool {
		for i := range hot {
			if h.marks[i].hot && hot[i].Window() == w && x.leaves(rule, i, h, w, pane, end) {
				h.marks[i] = exactMark{}
			}
		}
		isHot := func(m exactMark) bool { return m.hot }
		if !slices.ContainsFunc(h.marks, isHot) {
			low := sumPanes(w, x.counts[exactKey{rule, h.text}], pane)
			x.events = append(x.events, coolEvent(x.rules.Rules[rule].ID, h.text, end, low, low+sumPanes(w, x.hidden, pane)))
			return true
		}
		if !h.marks[h.by].hot {
			h.by = slices.IndexFunc(h.marks, isHot)
		}
		return false
	})
}

// ratio returns the highest present count of a hot key in proportion to the count that the
// threshold needed when it was last known.
func (x *exact) ratio(rule int, h *exactHot, present func(rules.Window) int64) (highest float64) {
	for i := range x.rules.Rules[rule].Hot {
		if !h.marks[i].hot {
			continue
		}
		w, counts := x.rules.Rules[rule].Hot[i].Window(), x.counts[exactKey{rule, h.text}]
		closed, _ := x.closedOf(rule, w)
		low := max(sumPanes(w, counts, closed), sumPanes(w, counts, present(w)))
		highest = max(highest, float64(low)/float64(h.marks[i].need))
	}
	return highest
}

// leaves reports whether a threshold no longer holds a key hot.
func (x *exact) leaves(rule, number int, h *exactHot, w rules.Window, pane int64, end time.Time) bool {
	m, counts := &h.marks[number], x.counts[exactKey{rule, h.text}]
	if end.Before(m.over) {
		return false
	}
	n := x.needs(rule, number, h.text, pane)
	if !n.unknown {
		m.need = n.enter
	}
	exit := n.exit
	high := sumPanes(w, counts, pane) + sumPanes(w, x.hidden, pane)
	below := high < exit && !x.lostIn(w, pane)
	for later := pane + 1; below && later <= w.Index(x.newest[rule]); later++ {
		below = sumPanes(w, counts, later) < exit // it is at the exit again already
	}
	if !below {
		m.below = time.Time{}
		return false
	}
	if m.below.IsZero() {
		m.below = end
	}
	return !end.Before(m.hold) && end.Sub(m.below) >= x.rules.Rules[rule].Hot[number].CoolDown
}

// lostIn reports whether there was a loss in the window that ends with last or after it.
func (x *exact) lostIn(w rules.Window, last int64) bool {
	return slices.ContainsFunc(x.lost, func(t time.Time) bool { return w.Index(t) > last-int64(w.Panes) })
}

func hotEvent(rule, text string, since time.Time, low int64, ratio float64) string {
	return fmt.Sprintf("%s %s hot since %d, low %d, ratio %.6g", rule, text, since.UnixNano(), low, ratio)
}

func coolEvent(rule, text string, until time.Time, low, high int64) string {
	return fmt.Sprintf("%s %s cool at %d, low %d, high %d", rule, text, until.UnixNano(), low, high)
}

// events returns a recorder's changes in the words of the model.
func (r *recorder) events() (events []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		for _, h := range c.Hot {
			events = append(events, hotEvent(h.Rule, h.Text, h.Since, h.Low, h.Ratio))
		}
		for _, h := range c.Cool {
			events = append(events, coolEvent(h.Rule, h.Text, h.Until, h.Low, h.High))
		}
	}
	return events
}
