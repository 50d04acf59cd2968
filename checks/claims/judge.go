package claims

import (
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/rules"
)

// judge checks the output of the detectors against the references.
type judge struct {
	stream  Stream
	inTime  bool // all packets arrive, within the lag
	rules   []*ruling
	now     int64
	exact   func() bool
	floor   func(rule int) int64
	unheard func(since int64) int64 // see network.unheard
	crowded func() bool             // reports whether there are more hot keys than room for them
	changed bool                    // hot keys or suspects changed since the last steer
	began   int64
	// slackClocks reports whether all clocks are known, keep their time and are off by at most
	// the slack.
	slackClocks bool
	blind       int64 // counts that may be hidden of any key, as reported in missing packets

	suspects [][]rules.Hot
	listed   map[listing]struct{} // all current suspects
	// suspectsTold is the number of suspects that are certain to be published. If there are more,
	// those with the highest low counts are published while there is room for their texts.
	suspectsTold int

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
	Rule
	id     string
	number int
	ref    *reference
	lives  map[int32]*life
	must   map[int32]struct{} // keys that had to be hot at some time
	owed   map[int32]int64    // time since which each key has to be published as a suspect
	floors [8]int64           // the last floors, newest first
}

// least returns the least that a key can have in the window that ends with a pane.
func (r *ruling) least(key int32, last int64) int64 {
	least, _, _ := r.ref.bounds(key, last)
	return least
}

// life is the state of a key that has been hot.
type life struct {
	hot     bool
	since   int64
	changes int
}

type listing struct {
	rule int
	key  int32
}

func newJudge(c *Case, s Stream) *judge {
	j := &judge{
		exact: func() bool { return true }, floor: func(int) int64 { return 0 }, unheard: func(int64) int64 { return 0 }, crowded: func() bool { return false },
		stream: s, inTime: c.Network.Most < lag && c.Network.Lost == 0, now: never, suspects: make([][]rules.Hot, c.Parts), listed: make(map[listing]struct{}),
		suspectsTold: int(min(1000, c.Memory/int64(16*128*len(c.Rules)))),
	}
	for i, r := range c.Rules {
		reach := int64(max(grace, lag) + c.Network.Most + r.CoolDown)
		j.rules = append(j.rules, &ruling{
			Rule: r, id: ruleID(i), number: i, ref: newReference(r, s.Dense(), reach),
			lives: make(map[int32]*life), must: make(map[int32]struct{}),
		})
	}
	return j
}

// maxExamples is the most examples kept of each claim's violations.
const maxExamples = 2

func (j *judge) wrong(c Claim, r *ruling, key int32, format string, args ...any) {
	j.broken[c]++
	if j.broken[c] <= maxExamples {
		text := ""
		if r != nil {
			text = r.id + " " + string(j.stream.AppendText(nil, key)) + ": "
		}
		j.examples = append(j.examples, fmt.Sprintf("%s: at %s: %s%s", c, at(j.now), text, fmt.Sprintf(format, args...)))
	}
}

func at(t int64) string { return time.Unix(0, t).UTC().Format("15:04:05.000000") }

func (j *judge) find(h rules.Hot) (*ruling, int32) {
	for _, r := range j.rules {
		if key, ok := j.stream.ID([]byte(h.Text)); ok && r.id == h.Rule {
			return r, key
		}
	}
	j.wrong(FalseHot, nil, 0, "%q is no key of the stream", h.Key)
	return nil, 0
}

// Publish implements [aggregator.Publisher].
func (j *judge) Publish(change rules.Change) {
	j.changed = true
	for _, h := range change.Hot {
		if r, key := j.find(h); r != nil {
			j.hot(r, key, h)
		}
	}
	for _, h := range change.Cool {
		if r, key := j.find(h); r != nil {
			j.cool(r, key, h)
		}
	}
}

func (j *judge) hot(r *ruling, key int32, h rules.Hot) {
	j.judged++
	l := r.lives[key]
	if l == nil {
		l = &life{}
		r.lives[key] = l
		j.lastFirst = j.now
	}
	since := h.Since.UnixNano()
	if l.hot {
		j.wrong(NotInTurn, r, key, "hot again, since %s", at(since))
	}
	l.hot, l.since = true, since
	l.changes++
	if r.Changes > 0 && l.changes == r.Changes+1 {
		j.wrong(Flapping, r, key, "change %d", l.changes)
	}
	if h.Low < r.N {
		j.wrong(FalseHot, r, key, "hot with a low of %d", h.Low)
	}
	if since > j.now {
		j.wrong(FalseHot, r, key, "hot since %s, which is to come", at(since))
	}
	from := r.ref.index(since)
	if most := r.ref.most(key, from, from+r.ref.panes-1); most < h.Low {
		j.wrong(LowAbove, r, key, "hot with a low of %d since %s; no window with that pane holds more than %d", h.Low, at(since), most)
		if most < r.N {
			j.wrong(FalseHot, r, key, "hot since %s; no window with that pane holds more than %d", at(since), most)
		}
	}
}

func (j *judge) cool(r *ruling, key int32, h rules.Hot) {
	j.judged++
	l, until := r.lives[key], h.Until.UnixNano()
	if l == nil || !l.hot {
		j.wrong(NotInTurn, r, key, "cool and was not hot")
		return
	}
	l.hot = false
	l.changes++
	if r.Changes > 0 && l.changes == r.Changes+1 {
		j.wrong(Flapping, r, key, "change %d", l.changes)
	}
	if until < l.since+int64(r.Hold) {
		j.wrong(HoldBroken, r, key, "hot since %s, cool at %s", at(l.since), at(until))
	}
	j.lastCool = max(j.lastCool, j.now)
	last := r.ref.index(until) - 1
	if r.ref.end(last) != until {
		j.wrong(CoolEarly, r, key, "cool at %s, where no pane ends", at(until))
	}
	truth, gap := r.least(key, last), j.gap(r, key, last)
	if truth-gap.secret >= r.Exit {
		j.wrong(CoolEarly, r, key, "cool at %s with %d (%d of them never heard of), the exit is %d", at(until), truth, gap.secret, r.Exit)
	}
	// A count or a report of a loss that came late does not undo an earlier decision.
	for p := last - 1; j.inTime && r.ref.end(p) > until-int64(r.CoolDown); p-- {
		if truth, gap := r.least(key, p), j.gap(r, key, p); truth-gap.secret >= r.Exit {
			j.wrong(CoolEarly, r, key, "cool at %s; at %s it had %d, within the cool-down of %v", at(until), at(r.ref.end(p)), truth, r.CoolDown)
			break
		}
	}
	if h.High == rules.Unknown || h.High >= r.Exit {
		j.wrong(CoolEarly, r, key, "cool at %s with a high of %d, the exit is %d", at(until), h.High, r.Exit)
	}
	j.bounds(r, key, h, last, "cool")
}

// bounds checks the bounds of a closed window against the truth.
func (j *judge) bounds(r *ruling, key int32, h rules.Hot, last int64, word string) {
	least, most, _ := r.ref.bounds(key, last)
	gap := j.gap(r, key, last)
	if h.Low > most {
		j.wrong(LowAbove, r, key, "%s: low %d, truth %d of the window that ends at %s", word, h.Low, most, at(r.ref.end(last)))
	}
	if h.High != rules.Unknown && h.High < least-gap.secret {
		j.wrong(HighBelow, r, key, "%s: high %d, truth %d (%d never heard of) of the window that ends at %s", word, h.High, least, gap.secret, at(r.ref.end(last)))
	}
	if j.exact() && (min(h.Low, h.High) < least || max(h.Low, h.High) > most) {
		j.wrong(Inexact, r, key, "%s: %d to %d, truth %d to %d of the window that ends at %s", word, h.Low, h.High, least, most, at(r.ref.end(last)))
	}
}

// gap returns the part of a key's count that the aggregator does not know, in the window that
// ends with a pane.
func (j *judge) gap(r *ruling, key int32, last int64) gap {
	g := r.ref.gap(key, last)
	g.secret += j.blind
	return g
}

// account judges a key's bounds in a closed window, whether or not the key is hot.
func (j *judge) account(text string, a aggregator.Account) {
	r, key := j.find(rules.Hot{Key: rules.Key{Rule: a.Rule, Text: text}})
	if r == nil {
		return
	}
	j.judged++
	if l := r.lives[key]; a.Hot && l != nil && l.hot && a.End.UnixNano()-int64(r.D) >= l.since {
		j.windows++
		if a.High == rules.Unknown || a.High-a.Low > r.N/10 {
			j.vague++
		}
	}
	j.bounds(r, key, rules.Hot{Low: a.Low, High: a.High}, r.ref.index(a.End.UnixNano())-1, "account")
}

// Refresh implements [aggregator.Publisher].
func (j *judge) Refresh(_ int, hot []rules.Hot) {
	for _, h := range hot {
		r, key := j.find(h)
		if r == nil {
			continue
		}
		j.judged++
		if l := r.lives[key]; l == nil || !l.hot {
			j.wrong(NotInTurn, r, key, "refreshed and not hot")
		}
		j.certain(r, key, h)
		if j.exact() || !j.holdBefore(r, key, h) {
			j.present(r, key, h, "refresh")
		}
	}
}

// certain judges the low count of a refresh against the truth, without regard to the uncertainty
// of clocks. The bounds allow for clocks that are off and left alone, once their senders are
// known.
func (j *judge) certain(r *ruling, key int32, h rules.Hot) {
	over, newest := r.ref.index(j.now-int64(lag))-1, r.ref.newest
	if !j.slackClocks || r.ref.end(over-r.ref.panes)-j.began < knownAfter+second {
		return
	}
	for last := over - 5; last <= newest; last++ {
		if h.Low <= r.ref.truth(key, last) {
			return
		}
	}
	j.wrong(LowAbove, r, key, "refresh: low %d, truth %d of the window that ends at %s, and no more in those beside it", h.Low, r.ref.truth(key, over), at(r.ref.end(over)))
}

// holdBefore reports whether the bounds hold for a window that ended up to half a second before
// the last closed one. They may belong to such a window after a loss, but not while nothing is
// lost.
func (j *judge) holdBefore(r *ruling, key int32, h rules.Hot) bool {
	over := r.ref.index(j.now-int64(lag)) - 1
	for last := over - 1; r.ref.end(last) >= r.ref.end(over)-second/2; last-- {
		least, most, _ := r.ref.bounds(key, last)
		if h.Low <= most && (h.High == rules.Unknown || h.High >= least-j.gap(r, key, last).secret) {
			return true
		}
	}
	return false
}

// present judges bounds that belong to the last closed window or to a later one. The high count
// of a later window is not a bound yet.
func (j *judge) present(r *ruling, key int32, h rules.Hot, word string) {
	over, newest := r.ref.index(j.now-int64(lag))-1, r.ref.newest
	for last := over + 1; last <= newest; last++ {
		if _, most, _ := r.ref.bounds(key, last); h.Low <= most {
			return
		}
	}
	j.bounds(r, key, h, over, word)
}

// Suspects implements [aggregator.Publisher].
func (j *judge) Suspects(part int, suspects []rules.Hot) {
	for _, h := range suspects {
		r, key := j.find(h)
		if r == nil {
			continue
		}
		j.judged++
		if l := r.lives[key]; l != nil && l.hot {
			j.wrong(NotInTurn, r, key, "suspect and hot")
		}
		if j.exact() {
			j.wrong(Inexact, r, key, "suspect (%d to %d) though all is known", h.Low, h.High)
		}
		j.present(r, key, h, "suspect")
	}
	j.changed = true
	j.suspects[part] = slices.Clone(suspects)
	clear(j.listed)
	for _, list := range j.suspects {
		for _, h := range list {
			if r, key := j.find(h); r != nil {
				j.listed[listing{r.number, key}] = struct{}{}
			}
		}
	}
}

// Instances implements [aggregator.Publisher].
func (j *judge) Instances([]rules.Instance) {}
