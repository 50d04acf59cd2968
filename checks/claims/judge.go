package claims

import (
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// judge checks the output of the detectors against the references.
type judge struct {
	stream          EventStream
	inTime          bool // all packets arrive, within the lag
	rules           []*ruling
	now             int64
	exact           func() bool
	floorOf         func(rule int) int64
	hiddenInMissing func(since int64) int64 // see network.hiddenInMissing
	isCrowded       func() bool             // reports whether there are more hot keys than room for them
	changed         bool                    // hot keys or suspects changed since the last steer
	began           int64
	// slackClocks reports whether all clocks are known, keep their time and are off by at most
	// the slack.
	slackClocks bool
	blind       int64 // counts that may be hidden of any key, as reported in missing packets

	suspects [][]published.Hot
	listed   map[listedKey]struct{} // all current suspects
	// suspectsPublished is the number of suspects that are certain to be published. If there are
	// more, those with the highest low counts are published while there is room for their texts.
	suspectsPublished int

	broken   [claims]int64
	examples []string

	judged    int64 // pairs of bounds judged
	windows   int64 // windows judged of watched keys that are hot
	vague     int64 // windows whose bounds are unknown, or apart by more than a tenth of the threshold
	lastFirst int64 // time at which the latest key became hot for the first time
	lastCool  int64 // time at which the latest key cooled
	floorMost int64
}

// ruling is the judgement of one rule.
type ruling struct {
	HotRule
	id          string
	number      int
	ref         *trueCounts
	states      map[int32]*keyState
	dueHot      map[int32]struct{} // keys that had to be hot at some time
	dueSuspects map[int32]int64    // time since which each key has to be published as a suspect
	floors      [8]int64           // the last floors, newest first
}

// lowestCount returns the least that a key can have in the window that ends with a pane.
func (r *ruling) lowestCount(key int32, last int64) int64 {
	lowest, _, _ := r.ref.bounds(key, last)
	return lowest
}

// keyState is the state of a key that has been hot.
type keyState struct {
	hot     bool
	since   int64
	changes int
}

type listedKey struct {
	rule int
	key  int32
}

func newJudge(c *Case, s EventStream) *judge {
	j := &judge{
		exact: func() bool { return true }, floorOf: func(int) int64 { return 0 }, hiddenInMissing: func(int64) int64 { return 0 }, isCrowded: func() bool { return false },
		stream: s, inTime: c.Network.Most < lag && c.Network.Lost == 0, now: never, suspects: make([][]published.Hot, c.Parts), listed: make(map[listedKey]struct{}),
		suspectsPublished: int(min(1000, c.Memory/int64(16*128*len(c.Rules)))),
	}
	for i, r := range c.Rules {
		reach := int64(max(grace, lag) + c.Network.Most + r.CoolDown)
		j.rules = append(j.rules, &ruling{
			HotRule: r, id: ruleID(i), number: i, ref: newReference(r, s.Dense(), reach),
			states: make(map[int32]*keyState), dueHot: make(map[int32]struct{}),
		})
	}
	return j
}

// maxExamples is the most examples kept of each claim's violations.
const maxExamples = 2

func (j *judge) recordViolation(c Claim, r *ruling, key int32, format string, args ...any) {
	j.broken[c]++
	if j.broken[c] <= maxExamples {
		text := ""
		if r != nil {
			text = r.id + " " + string(j.stream.AppendText(nil, key)) + ": "
		}
		j.examples = append(j.examples, fmt.Sprintf("%s: at %s: %s%s", c, timeOfDay(j.now), text, fmt.Sprintf(format, args...)))
	}
}

func timeOfDay(t int64) string { return time.Unix(0, t).UTC().Format("15:04:05.000000") }

func (j *judge) findKey(h published.Hot) (*ruling, int32) {
	for _, r := range j.rules {
		if key, ok := j.stream.ID([]byte(h.Text)); ok && r.id == h.Rule {
			return r, key
		}
	}
	j.recordViolation(FalseHot, nil, 0, "%q is no key of the stream", h.Key)
	return nil, 0
}

// Publish implements [aggregator.Publisher].
func (j *judge) Publish(change published.Change) {
	j.changed = true
	for _, h := range change.Hot {
		if r, key := j.findKey(h); r != nil {
			j.checkHot(r, key, h)
		}
	}
	for _, h := range change.Cool {
		if r, key := j.findKey(h); r != nil {
			j.checkCool(r, key, h)
		}
	}
}

func (j *judge) checkHot(r *ruling, key int32, h published.Hot) {
	j.judged++
	l := r.states[key]
	if l == nil {
		l = &keyState{}
		r.states[key] = l
		j.lastFirst = j.now
	}
	since := h.Since.UnixNano()
	if l.hot {
		j.recordViolation(NotInTurn, r, key, "hot again, since %s", timeOfDay(since))
	}
	l.hot, l.since = true, since
	l.changes++
	if r.Changes > 0 && l.changes == r.Changes+1 {
		j.recordViolation(Flapping, r, key, "change %d", l.changes)
	}
	if h.Low < r.N {
		j.recordViolation(FalseHot, r, key, "hot with a low of %d", h.Low)
	}
	if since > j.now {
		j.recordViolation(FalseHot, r, key, "hot since %s, which is to come", timeOfDay(since))
	}
	from := r.ref.index(since)
	if highest := r.ref.highestCount(key, from, from+r.ref.panes-1); highest < h.Low {
		j.recordViolation(LowAbove, r, key, "hot with a low of %d since %s; no window with that pane holds more than %d", h.Low, timeOfDay(since), highest)
		if highest < r.N {
			j.recordViolation(FalseHot, r, key, "hot since %s; no window with that pane holds more than %d", timeOfDay(since), highest)
		}
	}
}

func (j *judge) checkCool(r *ruling, key int32, h published.Hot) {
	j.judged++
	l, until := r.states[key], h.Until.UnixNano()
	if l == nil || !l.hot {
		j.recordViolation(NotInTurn, r, key, "cool and was not hot")
		return
	}
	l.hot = false
	l.changes++
	if r.Changes > 0 && l.changes == r.Changes+1 {
		j.recordViolation(Flapping, r, key, "change %d", l.changes)
	}
	if until < l.since+int64(r.Hold) {
		j.recordViolation(HoldBroken, r, key, "hot since %s, cool at %s", timeOfDay(l.since), timeOfDay(until))
	}
	j.lastCool = max(j.lastCool, j.now)
	last := r.ref.index(until) - 1
	if r.ref.paneEnd(last) != until {
		j.recordViolation(CoolEarly, r, key, "cool at %s, where no pane ends", timeOfDay(until))
	}
	truth, gap := r.lowestCount(key, last), j.unknownPart(r, key, last)
	if truth-gap.secret >= r.Exit {
		j.recordViolation(CoolEarly, r, key, "cool at %s with %d (%d of them never heard of), the exit is %d", timeOfDay(until), truth, gap.secret, r.Exit)
	}
	// A count or a report of a loss that came late does not undo an earlier decision.
	for p := last - 1; j.inTime && r.ref.paneEnd(p) > until-int64(r.CoolDown); p-- {
		if truth, gap := r.lowestCount(key, p), j.unknownPart(r, key, p); truth-gap.secret >= r.Exit {
			j.recordViolation(CoolEarly, r, key, "cool at %s; at %s it had %d, within the cool-down of %v", timeOfDay(until), timeOfDay(r.ref.paneEnd(p)), truth, r.CoolDown)
			break
		}
	}
	if h.High == published.Unknown || h.High >= r.Exit {
		j.recordViolation(CoolEarly, r, key, "cool at %s with a high of %d, the exit is %d", timeOfDay(until), h.High, r.Exit)
	}
	j.checkBounds(r, key, h, last, "cool")
}

// checkBounds checks the bounds of a closed window against the truth.
func (j *judge) checkBounds(r *ruling, key int32, h published.Hot, last int64, word string) {
	lowest, highest, _ := r.ref.bounds(key, last)
	gap := j.unknownPart(r, key, last)
	if h.Low > highest {
		j.recordViolation(LowAbove, r, key, "%s: low %d, truth %d of the window that ends at %s", word, h.Low, highest, timeOfDay(r.ref.paneEnd(last)))
	}
	if h.High != published.Unknown && h.High < lowest-gap.secret {
		j.recordViolation(HighBelow, r, key, "%s: high %d, truth %d (%d never heard of) of the window that ends at %s", word, h.High, lowest, gap.secret, timeOfDay(r.ref.paneEnd(last)))
	}
	if j.exact() && (min(h.Low, h.High) < lowest || max(h.Low, h.High) > highest) {
		j.recordViolation(Inexact, r, key, "%s: %d to %d, truth %d to %d of the window that ends at %s", word, h.Low, h.High, lowest, highest, timeOfDay(r.ref.paneEnd(last)))
	}
}

// unknownPart returns the part of a key's count that the aggregator does not know, in the window
// that ends with a pane.
func (j *judge) unknownPart(r *ruling, key int32, last int64) gap {
	g := r.ref.unknownPart(key, last)
	g.secret += j.blind
	return g
}

// checkAccount judges a key's bounds in a closed window, whether or not the key is hot.
func (j *judge) checkAccount(text string, a aggregator.Account) {
	r, key := j.findKey(published.Hot{Key: rules.Key{Rule: a.Rule, Text: text}})
	if r == nil {
		return
	}
	j.judged++
	if l := r.states[key]; a.Hot && l != nil && l.hot && a.End.UnixNano()-int64(r.D) >= l.since {
		j.windows++
		if a.High == published.Unknown || a.High-a.Low > r.N/10 {
			j.vague++
		}
	}
	j.checkBounds(r, key, published.Hot{Low: a.Low, High: a.High}, r.ref.index(a.End.UnixNano())-1, "account")
}

// Refresh implements [aggregator.Publisher].
func (j *judge) Refresh(_ int, hot []published.Hot) {
	for _, h := range hot {
		r, key := j.findKey(h)
		if r == nil {
			continue
		}
		j.judged++
		if l := r.states[key]; l == nil || !l.hot {
			j.recordViolation(NotInTurn, r, key, "refreshed and not hot")
		}
		j.checkLow(r, key, h)
		if j.exact() || !j.boundsHeldBefore(r, key, h) {
			j.checkCurrent(r, key, h, "refresh")
		}
	}
}

// checkLow judges the low count of a refresh against the truth, without regard to the uncertainty
// of clocks. The bounds allow for clocks that are off and left alone, once their senders are
// known.
func (j *judge) checkLow(r *ruling, key int32, h published.Hot) {
	lastClosed, newest := r.ref.index(j.now-int64(lag))-1, r.ref.newest
	if !j.slackClocks || r.ref.paneEnd(lastClosed-r.ref.panes)-j.began < knownAfter+second {
		return
	}
	for last := lastClosed - 5; last <= newest; last++ {
		if h.Low <= r.ref.trueCount(key, last) {
			return
		}
	}
	j.recordViolation(LowAbove, r, key, "refresh: low %d, truth %d of the window that ends at %s, and no more in those beside it", h.Low, r.ref.trueCount(key, lastClosed), timeOfDay(r.ref.paneEnd(lastClosed)))
}

// boundsHeldBefore reports whether the bounds hold for a window that ended up to half a second
// before the last closed one. They may belong to such a window after a loss, but not while nothing
// is lost.
func (j *judge) boundsHeldBefore(r *ruling, key int32, h published.Hot) bool {
	lastClosed := r.ref.index(j.now-int64(lag)) - 1
	for last := lastClosed - 1; r.ref.paneEnd(last) >= r.ref.paneEnd(lastClosed)-second/2; last-- {
		lowest, highest, _ := r.ref.bounds(key, last)
		if h.Low <= highest && (h.High == published.Unknown || h.High >= lowest-j.unknownPart(r, key, last).secret) {
			return true
		}
	}
	return false
}

// checkCurrent judges bounds that belong to the last closed window or to a later one. The high
// count of a later window is not a bound yet.
func (j *judge) checkCurrent(r *ruling, key int32, h published.Hot, word string) {
	lastClosed, newest := r.ref.index(j.now-int64(lag))-1, r.ref.newest
	for last := lastClosed + 1; last <= newest; last++ {
		if _, highest, _ := r.ref.bounds(key, last); h.Low <= highest {
			return
		}
	}
	j.checkBounds(r, key, h, lastClosed, word)
}

// Suspects implements [aggregator.Publisher].
func (j *judge) Suspects(part int, suspects []published.Hot) {
	for _, h := range suspects {
		r, key := j.findKey(h)
		if r == nil {
			continue
		}
		j.judged++
		if l := r.states[key]; l != nil && l.hot {
			j.recordViolation(NotInTurn, r, key, "suspect and hot")
		}
		if j.exact() {
			j.recordViolation(Inexact, r, key, "suspect (%d to %d) though all is known", h.Low, h.High)
		}
		j.checkCurrent(r, key, h, "suspect")
	}
	j.changed = true
	j.suspects[part] = slices.Clone(suspects)
	clear(j.listed)
	for _, list := range j.suspects {
		for _, h := range list {
			if r, key := j.findKey(h); r != nil {
				j.listed[listedKey{r.number, key}] = struct{}{}
			}
		}
	}
}

// Instances implements [aggregator.Publisher].
func (j *judge) Instances([]published.Instance) {}
