package live

import (
	"fmt"
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// effectSpan is how far back the effect of an action is computed.
const effectSpan = time.Minute

// amounts are the least and the most of an amount in a key's unit. The most is infinite if it is
// not known.
type amounts struct{ low, high float64 }

// recentLoad holds the requests of a key in the last minute, in its unit.
type recentLoad struct {
	hot     *HotKey
	span    time.Duration // the part of the minute that the key's points cover
	offered amounts
	refused amounts // the part of offered that instances report as refused
	over    amounts // the part of offered that exceeds the limit
}

// Effect describes in words what an action on a key would have done to the requests of the last
// minute, and how many of them were refused without it. An empty action is a release. The points
// of a key are one a second, so a limit is computed as if the requests of a second came evenly.
func (s *Snapshot) Effect(key rules.Key, action published.ControlAction) string {
	var l recentLoad
	for i := range s.Hot {
		if s.Hot[i].Key == key {
			l = loadOf(&s.Hot[i])
		}
	}
	switch {
	case l.hot == nil:
		return "Not known: the key is not hot, so its requests are not counted one by one."
	case l.span == 0:
		return "Not known: the key has just become hot."
	}
	in, all := l.spanWords(), l.amountWords(l.offered, false)+l.noun()
	who := "it"
	if action == "" {
		who = "its rule alone"
	}
	switch {
	case action == published.ControlBlock:
		return fmt.Sprintf("%s it would have refused all of %s.%s", in, all, l.refusedWords(""))
	case action == published.ControlAllow:
		return fmt.Sprintf("%s it would have let all of %s pass.%s", in, all, l.refusedWords(" How many of them were refused is not known."))
	case l.hot.Mode == rules.ModeShadow:
		return fmt.Sprintf("%s %s would have refused none of %s, since the limit is in shadow mode.%s", in, who, all, l.refusedWords(""))
	case action == "" && l.hot.Spared:
		return fmt.Sprintf("%s %s would have refused none of %s, since the key is spared.%s", in, who, all, l.refusedWords(""))
	case l.limits() == 0:
		return fmt.Sprintf("%s there were %s. How many of them %s would have refused is not known.%s", in, all, who, l.refusedWords(""))
	}
	return fmt.Sprintf("%s %s would have %s %s of %s.%s", in, who, l.verb(), l.amountWords(l.over, false), all, l.refusedWords(""))
}

// refusedWords returns a sentence about what was refused, or unknown if no instance reports it.
func (l *recentLoad) refusedWords(unknown string) string {
	switch {
	case l.hot.Admitted.AtLeast || l.hot.Admitted.Rates.Requests() == 0:
		return unknown
	case l.refused.high == 0:
		return " None of them were refused."
	}
	return fmt.Sprintf(" In fact %s of them were refused.", l.amountWords(l.refused, true))
}

// limits returns the number of limits that hold the key together, or 0 if it is not known or there
// is no limit with a rate.
func (l *recentLoad) limits() int {
	switch h := l.hot; {
	case h.Limit.IsZero():
		return 0
	case h.Scope != "" && h.Scope != rules.ScopeInstance:
		return 1
	default:
		return h.Admitted.Limits
	}
}

// loadOf adds up the points of a key.
func loadOf(h *HotKey) recentLoad {
	l := recentLoad{hot: h}
	limits := l.limits()
	low, high := newBucket(h, limits), newBucket(h, limits)
	n := h.History.Len()
	for i := range n {
		p := h.History.At(i)
		pause := time.Second
		if i > 0 {
			pause = p.At.Sub(h.History.At(i - 1).At)
		}
		count := amounts{p.Rate, h.highestRate(&p)} // of the second before the point
		over := amounts{low.takeSecond(count.low, pause), high.takeSecond(count.high, pause)}
		if h.History.At(n-1).At.Sub(p.At) < effectSpan {
			l.span += time.Second
			l.offered.low, l.offered.high = l.offered.low+count.low, l.offered.high+count.high
			l.over.low, l.over.high = l.over.low+over.low, l.over.high+over.high
			if p.Refused > 0 { // the most may be infinite
				l.refused.low, l.refused.high = l.refused.low+count.low*p.Refused, l.refused.high+count.high*p.Refused
			}
		}
	}
	return l
}

// highestRate returns the upper bound of a point's rate: as far above it as the count's upper bound is
// above its lower one.
func (h *HotKey) highestRate(p *Point) float64 {
	switch window := h.Cause.Rate.Per; {
	case h.Estimated:
		return p.Rate
	case p.High == published.Unknown || window <= 0:
		return math.Inf(1)
	case p.Low > 0:
		return p.Rate * max(1, float64(p.High)/float64(p.Low))
	default:
		return max(p.Rate, float64(p.High)/window.Seconds())
	}
}

// bucket is the limits of a key together.
type bucket struct{ perSecond, burst, tokens float64 }

func newBucket(h *HotKey, limits int) bucket {
	b := bucket{burst: float64(limits) * float64(h.Burst)}
	if h.Limit.Per > 0 {
		b.perSecond = float64(limits) * float64(h.Limit.N) / h.Limit.Per.Seconds()
	}
	b.tokens = b.burst
	return b
}

// takeSecond returns the number of requests of a second beyond the limit. The second ends pause
// after the one before.
func (b *bucket) takeSecond(requests float64, pause time.Duration) (over float64) {
	before := max(0, pause-time.Second)
	free := min(b.burst, b.tokens+before.Seconds()*b.perSecond) + b.perSecond
	over = max(0, requests-free)
	b.tokens = min(b.burst, max(0, free-requests))
	return over
}

// verb returns what the limit does to requests over it.
func (l *recentLoad) verb() string {
	switch l.hot.Mode {
	case rules.ModeWait:
		return "delayed or refused"
	case rules.ModeServe:
		return "answered in the handler's place"
	}
	return "refused"
}

func (l *recentLoad) spanWords() string {
	if l.span > 55*time.Second { // a late reading loses a point
		return "In the last minute"
	}
	return "In the last " + hotwords.Span(l.span)
}

// amountWords formats amounts. They are estimates for windows other than a second, for samples, and
// for what was refused, which instances report as a mean of ten seconds.
func (l *recentLoad) amountWords(a amounts, isEstimate bool) string {
	format := func(n float64) string {
		if l.hot.Cause.Unit == rules.Bytes {
			return hotwords.Bytes(n)
		}
		return hotwords.Thousands(int64(n))
	}
	words := ""
	if isEstimate || l.hot.Cause.Rate.Per != time.Second || l.hot.Estimated {
		a, words = amounts{rounded(a.low), rounded(a.high)}, "about "
	}
	switch low, high := format(a.low), ""; {
	case math.IsInf(a.high, 1):
		return "at least " + low
	default:
		if high = format(a.high); low != high {
			low += "-" + high
		}
		return words + low
	}
}

// rounded rounds to three digits.
func rounded(n float64) float64 {
	if n < 1000 || math.IsInf(n, 1) {
		return math.Round(n)
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-2)
	return math.Round(n/unit) * unit
}

// noun returns the noun for amounts, with a space before it.
func (l *recentLoad) noun() string {
	switch l.hot.Cause.Unit {
	case rules.Bytes:
		return ""
	case rules.Millis:
		return " ms"
	case rules.Units:
		return " units"
	}
	return " requests"
}
