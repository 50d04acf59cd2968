package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// ruleWatch finds the hot keys of one rule.
type ruleWatch struct {
	rule       *rules.Rule
	number     int     // number of the rule
	views      []*view // one for each window length of its thresholds
	thresholds []*threshold
	keys       map[string]*watched // hot or suspect keys by text
	hot        []*watched          // hot keys in the order in which they became hot
	suspects   int                 // number of suspects among the keys
	combines   bool                // whether one key of the rule can explain another
	levels     []ruleLevel         // levels of the address that the rule names, if there are several
	complete   time.Time           // all earlier counts have arrived
	overlaps   bool                // whether a request counts for several keys of the rule
	shares     bool                // whether some threshold is a share
	hours      *hours              // nil without a jump over days
	tops       topState            // used with OnTops
	skew       ruleSkew
	from       time.Time // earlier counts are those of a rule that counted differently, under the same name
}

// view is one window of a rule, with the state that its thresholds need.
type view struct {
	*window.Window
	watch      *ruleWatch // rule that the view belongs to
	number     int        // index among the views of the rule
	thresholds []*threshold
	history    *window.History // nil without a jump
	groups     *window.Groups  // nil without a share
	totals     *window.Totals  // nil unless the rule's keys overlap
	ranks      bool            // whether some threshold compares keys with others when panes close

	least  int64                             // lowest count at which a key can be hot
	bound  int64                             // upper bound of the hidden counts of a key: a recent floor
	level  int64                             // count from which on a key is judged: least minus bound
	pinned int                               // number of keys with a pinned entry
	marked int                               // number of marks that are hot
	was    *view                             // view whose windows it continues, during a reload
	saved  map[string]*snapshot.WindowCounts // hot keys of another process, until they are adopted

	explained  explained
	sinceStart bool // whether it has all counts since [DetectorConfig.Start]

	began       int64 // first pane that was seen from its start on, or ring.Never
	newest      int64 // newest pane that holds a count
	closed      int64 // newest ended pane that has been judged
	lastToJudge int64 // newest pane at whose end a key may have the least count
}

// threshold is one threshold of a rule.
type threshold struct {
	*rules.Threshold
	rule    *rules.Rule
	number  int // index among the thresholds of the rule
	view    *view
	newest  ranking           // ranking by the newest ended window
	earlier map[int64]ranking // rankings of earlier windows by pane, as far as they were needed
}

// needs are the counts that decide on a key in one window. A key is hot if its low count is at
// least enter, which may be [published.Unknown]. It may be hot if its high count is at least maybe.
// A hot key stays hot unless its high count is below exit.
type needs struct{ enter, maybe, exit int64 }

// ranking holds the counts of the rule's keys that have, or may have, the least count in a
// window, the highest first.
type ranking struct {
	lows, highs []int64
	pane        int64 // pane of the window, or ring.Never if no window is ranked yet
	floor       int64 // most that a key not in the ranking can have beyond the least count
	unknown     bool  // whether some high count, or some key, is unknown
}

// watched is the state of a key that is hot or suspect, in addition to its counts.
type watched struct {
	rule     *ruleWatch
	text     string
	hash     uint64
	tag      window.Tag       // keeps windows from evicting the key's entry
	entries  []int32          // entry in each of the rule's views, or -1
	marks    []thresholdState // marks by threshold
	hotMarks int              // number of marks that are hot

	since     time.Time
	holder    *threshold // threshold that made the key hot, or another one once that has left
	listed    bool       // whether the key is published
	keyFamily            // keys that it explains, and keys that explain it
	habit                // whether it is usual

	meter *rateMeter // nil unless the key is hot
	skews skews      // used while the key is hot

	suspect   *threshold // the threshold that the key may have reached, or nil
	suspected time.Time
	exception *rules.Exception
	origins   *origins // instances that the counts come from
	routes    *origins
	callers   *origins
	top       *published.Attribution // last published origins
}

// thresholdState is the state of a key by one threshold.
type thresholdState struct {
	hot   bool
	need  int64     // count that made the key hot, as last known; 0 if never known
	over  time.Time // end of the window that made the key hot
	hold  time.Time // earliest time at which it cools
	below time.Time // end of the first window of the current run below the exit

	saved *savedMark // state in the process that the key was adopted from, until a high count is known

	adoptedRatio float64 // ratio in the detector that the key was adopted from, until a high count is known
}

// keyFamily relates a hot key to more general and more specific keys of its rule.
type keyFamily struct {
	parsed    bool
	route     string   // text before the parameters
	params    []string // escaped parameters; none if they are unknown or too many
	names     string   // names of the parameters
	general   []general
	heir      *watched // hot, more specific key that has most of its traffic
	heirHigh  int64    // most that the heir counts, or published.Unknown
	yields    bool     // whether it would not be hot without its heir
	keeps     bool     // whether it is to be listed, as far as decided
	explains  int      // number of more specific keys that are hot and not listed
	confirmed bool     // whether an ended window has confirmed the listing
	listedAt  time.Time
	published listing // last published listing
}

// listing is the published state of a key.
type listing struct{ listed, usual, spared bool }

// general is a key that is more general than another.
type general struct {
	text   string
	set    uint   // set of the other key's parameters that it has
	others string // names of the parameters that it lacks
}

// habit is the state of a hot key by its windows before the current one.
type habit struct {
	windows    [decode.BaselineWindows + 2]habitWindow // ring of windows by number
	hotSince   time.Time
	usual      bool
	byShare    bool // whether it was on nine tenths of the route's requests in the newest judged window
	usualSince time.Time
	spared     bool
	exceeds    bool // whether the unexplained count became a threshold above the mean, and is still half of one
	kin
}

// habitWindow is one whole window.
type habitWindow struct {
	seen      bool
	end       int64 // last pane of the window
	low, high int64
	byShare   bool // whether the key was on nine tenths of the route's requests
}

// kin relates a hot key to hot keys that share requests with it, by the windows that have
// ended.
type kin struct {
	related   bool       // whether a listed key that is not usual is related to this one
	explained int64      // most of this key's count that such keys have, or published.Unknown
	parts     []kinPart  // lower bounds of the parts of its count that related hot keys have
	specifics []*watched // more specific keys that are hot
}

// kinPart is the part of a key's count that keys of the same names have. A request has one of
// them, or as many as it repeats parameters.
type kinPart struct {
	names    string
	repeated int64 // see [window.Totals.HighRepeats]
	all      groupTally
	unusual  groupTally // sum over keys that are not usual
}

// groupTally adds up low counts of keys of one group, for the least number of their requests.
type groupTally struct {
	sum, highest int64
}

func (t *groupTally) add(low int64) { t.sum, t.highest = t.sum+low, max(t.highest, low) }

// atLeast returns the least number of requests that have one of the keys, if repeated counts
// belong to requests that count for several keys of the group. If repeated is [published.Unknown],
// it returns the requests of one key.
func (t *groupTally) atLeast(repeated int64) int64 {
	if repeated == published.Unknown {
		return t.highest
	}
	return max(t.highest, t.sum-repeated)
}

// windowState is the state of a key in one window of a view.
type windowState struct {
	entry int32 // entry in the view, or -1
	low   int64 // low count
	pane  int64 // last pane of the window
}

// candidate is a key that is judged.
type candidate struct {
	windowState
	w    *watched // nil if the key is not watched
	text []byte
	hash uint64
	when time.Time // time of the newest count, or end of the window
}
