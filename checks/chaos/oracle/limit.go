package oracle

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Quota is what one rule allows: Burst at once and Rate a second, so that a window of
// length w admits at most Burst + Rate × w. Quotas of one Family share their state;
// those of different families add up.
type Quota struct {
	Family string
	Rate   float64
	Burst  float64
}

// Window returns the quota of n permits in each span. A window of length w touches at
// most w ÷ span + 2 fixed windows that are n each: about a border of two, n + n pass at
// once. A log or blocks of a sliding window stay below that.
func Window(family string, n float64, span time.Duration) Quota {
	return Quota{Family: family, Rate: n / span.Seconds(), Burst: 2 * n}
}

// Limit judges the admissions of one key, over all that share its limit.
type Limit struct {
	Key      string
	terms    terms
	extras   []*extra
	admitted []Span // sent to served, in the order in which they came to be known
	checked  int    // those before have been right ends of windows
	quiet    time.Duration
}

// term is a quota in force at one holder, an instance that asks with it.
type term struct {
	holder string
	quota  Quota
	span   Span
}

type terms []term

// largest returns the largest burst and rate of each family in force within the window,
// and adds up the families.
func (ts terms) largest(w Span) (sum Quota) {
	for i, t := range ts {
		if slices.ContainsFunc(ts[:i], func(o term) bool { return o.quota.Family == t.quota.Family }) {
			continue // the family was added up already
		}
		var q Quota
		for _, o := range ts[i:] {
			if _, ok := o.span.overlap(w); ok && o.quota.Family == t.quota.Family {
				q.Rate, q.Burst = max(q.Rate, o.quota.Rate), max(q.Burst, o.quota.Burst)
			}
		}
		sum.Rate += q.Rate
		sum.Burst += q.Burst
	}
	return sum
}

// extra is an allowance for any window that it overlaps.
type extra struct {
	span Span
	kind extraKind
	plus float64 // permits
}

type extraKind int

const (
	lost  extraKind = iota // a burst more
	parts                  // decided by parts: the quota once more, however often
	fresh                  // by one that knew of no others: the quota once more, each time
)

// Hold says that from now on the holder asks with the quota. Until the change was
// confirmed, it may have asked with the quota before.
func (l *Limit) Hold(holder string, q Quota, asked, confirmed time.Duration) {
	l.Release(holder, confirmed)
	l.terms = append(l.terms, term{holder, q, Span{asked, Forever}})
}

// Release says that the holder asks no more.
func (l *Limit) Release(holder string, at time.Duration) {
	for i := range l.terms {
		if t := &l.terms[i]; t.holder == holder && t.span.To == Forever {
			t.span.To = at
		}
	}
}

// Lost says that the state may have been lost once, from now until the returned
// function has been called with the end: a burst more.
func (l *Limit) Lost(from time.Duration) (end func(time.Duration)) {
	return l.add(extra{kind: lost}, from)
}

// Away says that each of n holders may decide by its own part, until the end. All parts
// together are the quota once more, and a part is at least one permit. What parts have
// granted stays taken, so many outages allow no more than one.
func (l *Limit) Away(from time.Duration, n int) (end func(time.Duration)) {
	return l.add(extra{kind: parts, plus: float64(n)}, from)
}

// Fresh says that a holder begins, which knows of no others for a while and may decide
// by the whole quota.
func (l *Limit) Fresh(from time.Duration) (end func(time.Duration)) {
	return l.add(extra{kind: fresh}, from)
}

func (l *Limit) add(e extra, from time.Duration) func(time.Duration) {
	e.span = Span{from, Forever}
	l.extras = append(l.extras, &e)
	return func(to time.Duration) { e.span.To = to }
}

// Admit records a request that was let in: at an instant between when it was sent and
// when it was served.
func (l *Limit) Admit(sent, served time.Duration) {
	if sent >= l.quiet {
		l.admitted = append(l.admitted, Span{sent, served})
	}
}

// horizon is how far back windows are looked at. Longer windows are sums of shorter
// ones, and what a drift adds up to in one is beyond any burst.
const horizon = 2 * time.Minute

// settled is how late a request may come to be known.
const settled = 10 * time.Second

// quietly is how long after a violation no other is reported of the same key.
const quietly = 10 * time.Second

// known is how much later it is known whether the machine stood still, or whether the
// limits were away.
const known = 2 * time.Second

// Check looks at all windows that end with an admission which was not looked at
// before, some seconds ago, and returns the worst excess, or nil. After a violation it begins anew, with
// what is admitted some time later.
func (l *Limit) Check(now time.Duration) *Violation {
	slices.SortFunc(l.admitted, func(a, b Span) int { return int(a.To - b.To) })
	var worst *Violation
	most := 0.0
	for end := l.checked; end < len(l.admitted) && l.admitted[end].To <= now-known; end++ {
		if v, excess := l.endingAt(end); excess > most {
			worst, most = v, excess
		}
	}
	if worst != nil {
		l.admitted, l.quiet = nil, now+quietly
	}
	l.forget(now)
	return worst
}

// endingAt looks at the windows that end with the given admission. The k-th of the
// latest beginnings bounds the shortest window with k admissions for certain.
func (l *Limit) endingAt(end int) (worst *Violation, most float64) {
	to := l.admitted[end].To
	var begun []time.Duration
	for i := end; i >= 0 && to-l.admitted[i].To <= horizon; i-- {
		begun = append(begun, l.admitted[i].From)
	}
	slices.SortFunc(begun, func(a, b time.Duration) int { return int(b - a) })
	least := l.terms.largest(Span{to, to})
	for i, from := range begun {
		if to-from > horizon {
			break
		}
		if float64(i+1) <= least.Burst+least.Rate*(to-from).Seconds() {
			continue // a longer window has no smaller bound
		}
		w := Span{from, to}
		bound := l.Bound(w)
		if excess := float64(i+1) - bound; excess > most {
			most = excess
			worst = &Violation{At: to, Invariant: I1, Subject: l.Key, Text: fmt.Sprintf(
				"%d admitted from %.3fs to %.3fs (%.3fs); the quotas in force allow %.1f", i+1, from.Seconds(), to.Seconds(), (to - from).Seconds(), bound)}
		}
	}
	return worst, most
}

// Bound returns how many may be admitted in a window.
func (l *Limit) Bound(w Span) float64 {
	q := l.terms.largest(w)
	bound := q.Burst + q.Rate*(w.To-w.From).Seconds()
	whole, away := bound, false
	for _, e := range l.extras {
		if _, ok := e.span.overlap(w); !ok {
			continue
		}
		switch e.kind {
		case lost:
			bound += q.Burst
		case fresh:
			bound += whole
		case parts:
			if !away {
				bound += whole + e.plus
			}
			away = true
		}
	}
	// A permit that is earned at an instant counts as earned: clocks tick in
	// microseconds on one side and nanoseconds on the other.
	return math.Floor(bound + 0.01)
}

// forget drops what no window reaches any more. What was served lately is looked at
// again: answers come to be known out of order.
func (l *Limit) forget(now time.Duration) {
	past := slices.IndexFunc(l.admitted, func(s Span) bool { return s.To > now-horizon-settled })
	if past < 0 {
		past = len(l.admitted)
	}
	l.admitted = slices.Delete(l.admitted, 0, past)
	l.terms = slices.DeleteFunc(l.terms, func(t term) bool { return t.span.To < now-horizon-2*settled })
	l.extras = slices.DeleteFunc(l.extras, func(e *extra) bool { return e.span.To < now-horizon-2*settled })
	l.checked = slices.IndexFunc(l.admitted, func(s Span) bool { return s.To > now-settled })
	if l.checked < 0 {
		l.checked = len(l.admitted)
	}
}
