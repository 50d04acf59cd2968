package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/window"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// ruleWatch finds the hot keys of one rule.
type ruleWatch struct {
	rule       *rules.Rule
	number     int     // of the rule
	views      []*view // one for each length of window that its thresholds have
	thresholds []*threshold
	keys       map[string]*watched // those that are hot or suspect, by text
	hot        []*watched          // in the order in which they became hot
	suspects   int                 // how many of the keys are suspects
	combines   bool                // one key of the rule can explain another
	levels     []level             // of the address that the rule names, if there are several
	complete   time.Time           // all counts before it have arrived
	overlaps   bool                // a request counts for several keys of the rule
	shares     bool                // some threshold is a share
	hours      *hours              // nil without a jump over days
	skew       ruleSkew
	from       time.Time // counts of before are of a rule that counted otherwise, under the same name
}

// view is one window of a rule, with what its thresholds need of it.
type view struct {
	*window.Window
	watch      *ruleWatch // whose it is
	number     int        // among those of the rule
	thresholds []*threshold
	history    *window.History // nil without a jump
	groups     *window.Groups  // nil without a share
	totals     *window.Totals  // nil unless the rule's keys overlap
	repeats    *window.Repeats // the same
	compares   bool            // history or groups is not nil
	ranks      bool            // some threshold compares keys with others when panes close

	least  int64                     // the lowest count at which a key can be hot
	bound  int64                     // what can be hidden of a key, or more: the floor as it was lately
	level  int64                     // count from which a key is looked at: least, less the bound
	pinned int                       // keys that are tied to an entry
	marked int                       // marks that are hot
	was    *view                     // the one that it goes on with, during a reload
	saved  map[string]*snapshot.View // of hot keys, by another process, until they are adopted

	sinceStart bool // it has all that came since [DetectorConfig.Start]

	began  int64 // first pane that was seen from its start on; never: none
	newest int64 // newest pane that holds a count
	closed int64 // newest pane that is over and has been looked at
	busy   int64 // newest pane at whose end a key may have the least count
}

// threshold is one threshold of a rule.
type threshold struct {
	*rules.Threshold
	rule   *rules.Rule
	number int // among those of the rule
	view   *view
	ranking
	earlier map[int64]ranking // by pane: those before the newest window, as far as they were needed
}

// needs are the counts that decide on a key in one window. A key is hot if its low count is
// at least enter, which may be [rules.Unknown]. It may be hot if its high count is at
// least maybe. A hot key stays hot unless its high count is below exit.
type needs struct{ enter, maybe, exit int64 }

// ranking has the counts of the rule's keys that have, or may have, the least count, in the
// newest window that is over, the highest first.
type ranking struct {
	lows, highs []int64
	pane        int64 // never: nothing ranked yet
	floor       int64 // the most that another key can have beyond the least count
	unknown     bool  // some high count is not known, or some key
}

// watched is the state of a key that is hot or suspect, besides its counts.
type watched struct {
	rule  *ruleWatch
	text  string
	hash  uint64
	tag   window.Tag // no window makes room for another key with it
	at    []int32    // its entry in each of the rule's views; -1: none
	marks []mark     // by threshold
	hots  int        // marks that are hot

	since  time.Time
	by     *threshold // the one that made the key hot, as long as it says so
	listed bool       // is published
	family            // which keys it explains, and which explain it
	habit             // whether it is usual

	meter *meter // of a hot key
	skews skews  // of a hot key

	suspect   *threshold // the threshold that the key may have reached, or nil
	suspected time.Time
	exception *rules.Exception
	origins   *origins // instances
	routes    *origins
	callers   *origins
	top       *rules.Attribution // as it was published last
}

// mark is the state of a key by one threshold.
type mark struct {
	hot   bool
	need  int64     // the count that made the key hot, as it was known last; 0: never
	over  time.Time // when the window is over that made the key hot
	hold  time.Time // it does not cool before
	below time.Time // end of the first window of those that were below the exit in a row

	saved *savedMark // of the process that the key was adopted from, until a high count is known

	before float64 // ratio in the detector that the key was adopted from, until a high count is known
}

// family relates a hot key to more general and more specific keys of its rule.
type family struct {
	parsed    bool
	route     string   // the text before the parameters
	params    []string // escaped; none if they are unknown or too many
	names     string   // of the parameters
	general   []general
	heir      *watched // of the more specific ones that are hot: which has most of its traffic
	heirHigh  int64    // the most that the heir counts, or rules.Unknown
	yields    bool     // its traffic is its heir's
	keeps     bool     // is to be listed, as far as is decided
	explains  int      // more specific ones that are hot and not listed
	confirmed bool     // listed by a window that is over
	listedAt  time.Time
	published listing // as it was published last
}

// listing is how a key is published.
type listing struct{ listed, usual, spared bool }

// general is a key that is more general than another.
type general struct {
	text   string
	set    uint   // of the other's parameters
	others string // names of those that it has not
}

// habit is the state of a hot key by its windows before the present one.
type habit struct {
	windows    [decode.BaselineWindows + 2]habitWindow // by number, modulo their number
	hotSince   time.Time
	usual      bool
	byShare    bool // on nine tenths of the route's requests when that was looked at last
	usualSince time.Time
	spared     bool
	exceeds    bool // the unexplained count is a threshold above the mean, or was and still is half of one
	kin
}

// habitWindow is one whole window.
type habitWindow struct {
	seen      bool
	end       int64 // its last pane
	low, high int64
	byShare   bool // the key was on nine tenths of the route's requests
}

// kin relates a hot key to hot keys that share requests with it, by the windows that are
// over.
type kin struct {
	related   bool       // a key is listed that is not usual, and is related to this one
	explained int64      // the most of this key's count that such keys have, or rules.Unknown
	parts     []part     // of its count that hot keys beside it have at least
	specifics []*watched // the more specific keys that are hot
}

// part is the part of a key's count that keys of the same names have. A request has one of
// them, or as many as it repeats parameters.
type part struct {
	names    string
	repeated int64 // see [window.Repeats.Most]
	all      groupTally
	unusual  groupTally // keys that are not usual
}

// groupTally adds up low counts of keys of one group, for the least number of their requests.
type groupTally struct {
	sum, highest int64
}

func (t *groupTally) add(low int64) { t.sum, t.highest = t.sum+low, max(t.highest, low) }

// atLeast returns the least number of requests that have one of the keys, if repeated counts
// are of requests that count for several keys of the group. [rules.Unknown] leaves the
// requests of one key.
func (t *groupTally) atLeast(repeated int64) int64 {
	if repeated == rules.Unknown {
		return t.highest
	}
	return max(t.highest, t.sum-repeated)
}

// standing is the state of a key in one window of a view.
type standing struct {
	entry int32 // in the view, or -1
	low   int64 // the low count
	pane  int64 // the last pane of the window
}

// candidate is a key that is judged.
type candidate struct {
	standing
	w    *watched // nil if nothing is known of the key
	text []byte
	hash uint64
	when time.Time // of the newest count, or the end of the window
}
