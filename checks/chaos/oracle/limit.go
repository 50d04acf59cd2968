package oracle

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Quota is the allowance of one rule: Burst at once and Rate per second, so that a window of
// length w admits at most Burst + Rate × w. Quotas of one Family share their state. The quotas of
// different families add up.
type Quota struct {
	Family string
	Rate   float64
	Burst  float64
}

// Window returns the quota of n permits in each span. A window of length w touches at most w ÷
// span + 2 fixed windows of n each, since n + n may pass around the border of two. A log or the
// blocks of a sliding window stay below that.
func Window(family string, n float64, span time.Duration) Quota {
	return Quota{Family: family, Rate: n / span.Seconds(), Burst: 2 * n}
}

// KeyLimit judges the admissions of one key, over all processes that share its limit.
type KeyLimit struct {
	Key        string
	terms      terms
	extras     []*extra
	admitted   []Span // spans from sent to served, in the order of arrival
	checked    int    // number of admissions whose windows were checked
	quietUntil time.Duration
}

// term is a quota in force at one holder, an instance that asks with it.
type term struct {
	holder string
	quota  Quota
	span   Span
}

type terms []term

// largest returns the sum over all families of the largest burst and rate in force within the
// window.
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
	plus float64 // permits of parts, seconds of lost, or the part of apart
}

type extraKind int

const (
	lost  extraKind = iota // one more burst, and what is earned in some seconds
	parts                  // decided by parts: one more quota, however often
	fresh                  // decided by a holder that knew of no others: one more quota, each time
	apart                  // decided by some holders while others share the limit: their part of the rate
)

// Hold records that the holder asks with the quota from now on. Until the change was confirmed,
// it may still have asked with its earlier quota.
func (l *KeyLimit) Hold(holder string, q Quota, asked, confirmed time.Duration) {
	l.Release(holder, confirmed)
	l.terms = append(l.terms, term{holder, q, Span{asked, Forever}})
}

// Release records that the holder no longer asks.
func (l *KeyLimit) Release(holder string, end time.Duration) {
	for i := range l.terms {
		if t := &l.terms[i]; t.holder == holder && t.span.To == Forever {
			t.span.To = end
		}
	}
}

// AllowLoss records that the state of the last moments, the lag, may have been lost once. This
// allows one more burst, and the permits earned within the lag. It lasts from the given time until
// the end that is passed to the returned function.
func (l *KeyLimit) AllowLoss(from, lag time.Duration) (end func(time.Duration)) {
	return l.addExtra(extra{kind: lost, plus: lag.Seconds()}, from)
}

// AllowApart records that some holders, which have this part of all, may decide by that part of
// the rate while the others take from the shared limit. Their parts begin empty.
func (l *KeyLimit) AllowApart(from time.Duration, part float64) (end func(time.Duration)) {
	return l.addExtra(extra{kind: apart, plus: part}, from)
}

// AllowParts records that each of n holders may decide by its own part, until the end. All parts
// together are one more quota, and a part is at least one permit. Permits granted by parts stay
// taken, so many outages allow no more than one.
func (l *KeyLimit) AllowParts(from time.Duration, n int) (end func(time.Duration)) {
	return l.addExtra(extra{kind: parts, plus: float64(n)}, from)
}

// AllowFresh records that a holder starts. It does not know the others for a while and may decide
// by the whole quota.
func (l *KeyLimit) AllowFresh(from time.Duration) (end func(time.Duration)) {
	return l.addExtra(extra{kind: fresh}, from)
}

func (l *KeyLimit) addExtra(e extra, from time.Duration) func(time.Duration) {
	e.span = Span{from, Forever}
	l.extras = append(l.extras, &e)
	return func(to time.Duration) { e.span.To = to }
}

// Admit records a request that was admitted between sent and served.
func (l *KeyLimit) Admit(sent, served time.Duration) {
	if sent >= l.quietUntil {
		l.admitted = append(l.admitted, Span{sent, served})
	}
}

// horizon is the age of the oldest windows that are checked. Longer windows are sums of shorter
// ones, and over this time the excess from a drift is beyond any burst.
const horizon = 2 * time.Minute

// maxDelay is the longest delay with which a request becomes known.
const maxDelay = 10 * time.Second

// quietPeriod is the time after a violation in which no other is reported for the same key.
const quietPeriod = 10 * time.Second

// stallDelay is the time until it is known whether the machine stood still or the limits were
// unavailable.
const stallDelay = 2 * time.Second

// Check checks all windows that end with an admission some seconds old that was not checked
// before. It returns the worst excess, or nil. After a violation it drops all admissions and
// ignores requests until quietly has passed.
func (l *KeyLimit) Check(now time.Duration) *Violation {
	slices.SortFunc(l.admitted, func(a, b Span) int { return int(a.To - b.To) })
	var worst *Violation
	highest := 0.0
	for end := l.checked; end < len(l.admitted) && l.admitted[end].To <= now-stallDelay; end++ {
		if v, excess := l.checkEndingAt(end); excess > highest {
			worst, highest = v, excess
		}
	}
	if worst != nil {
		l.admitted, l.quietUntil = nil, now+quietPeriod
	}
	l.dropOld(now)
	return worst
}

// checkEndingAt checks the windows that end with the given admission. The k-th latest start is the
// beginning of the shortest window that is certain to have k admissions.
func (l *KeyLimit) checkEndingAt(end int) (worst *Violation, highest float64) {
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
			continue // the bound of a longer window is no smaller
		}
		w := Span{from, to}
		bound := l.Bound(w)
		if excess := float64(i+1) - bound; excess > highest {
			highest = excess
			worst = &Violation{At: to, Invariant: I1, Subject: l.Key, Text: fmt.Sprintf(
				"%d admitted from %.3fs to %.3fs (%.3fs); the quotas in force allow %.1f", i+1, from.Seconds(), to.Seconds(), (to - from).Seconds(), bound)}
		}
	}
	return worst, highest
}

// Bound returns the number of admissions allowed in a window.
func (l *KeyLimit) Bound(w Span) float64 {
	q := l.terms.largest(w)
	bound := q.Burst + q.Rate*(w.To-w.From).Seconds()
	whole, hasParts := bound, false
	for _, e := range l.extras {
		shared, ok := e.span.overlap(w)
		if !ok {
			continue
		}
		switch e.kind {
		case lost:
			bound += q.Burst + q.Rate*e.plus
		case apart:
			bound += q.Rate * e.plus * shared.Seconds()
		case fresh:
			bound += whole
		case parts:
			if !hasParts {
				bound += whole + e.plus
			}
			hasParts = true
		}
	}
	// A permit earned at the very instant counts as earned, since clocks tick in microseconds on
	// one side and nanoseconds on the other.
	return math.Floor(bound + 0.01)
}

// dropOld drops everything that no later window reaches. Recent admissions are checked again,
// since answers become known out of order.
func (l *KeyLimit) dropOld(now time.Duration) {
	past := slices.IndexFunc(l.admitted, func(s Span) bool { return s.To > now-horizon-maxDelay })
	if past < 0 {
		past = len(l.admitted)
	}
	l.admitted = slices.Delete(l.admitted, 0, past)
	l.terms = slices.DeleteFunc(l.terms, func(t term) bool { return t.span.To < now-horizon-2*maxDelay })
	l.extras = slices.DeleteFunc(l.extras, func(e *extra) bool { return e.span.To < now-horizon-2*maxDelay })
	l.checked = slices.IndexFunc(l.admitted, func(s Span) bool { return s.To > now-maxDelay })
	if l.checked < 0 {
		l.checked = len(l.admitted)
	}
}
