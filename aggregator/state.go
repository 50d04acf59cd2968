package aggregator

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/aggregator/internal/window"
)

// ruleWatch finds the hot keys of one rule.
type ruleWatch struct {
	rule       *hotparam.Rule
	number     int     // of the rule
	views      []*view // one for each length of window that its thresholds have
	thresholds []*threshold
	keys       map[string]*watched // those that are hot or suspect, by text
	hot        []*watched          // in the order in which they became hot
	suspects   int                 // how many of the keys are suspects
	combines   bool                // one key of the rule can explain another
	complete   time.Time           // all counts of before have come
	overlaps   bool                // a request counts for several keys of the rule
	shares     bool                // some threshold is a share
}

// view is one window of a rule, with what its thresholds need of it.
type view struct {
	*window.Window
	watch      *ruleWatch // whose it is
	number     int        // among those of the rule
	thresholds []*threshold
	history    *window.History // of a jump; nil: none
	groups     *window.Groups  // of a share; nil: none
	totals     *window.Totals  // of a rule whose keys overlap; nil: none
	repeats    *window.Repeats // of such a rule; nil: none
	compares   bool            // has one of them
	ranks      bool            // some threshold compares keys with others when panes close

	least  int64 // the lowest count at which a key can be hot
	bound  int64 // what can be hidden of a key, or more: the floor as it was lately
	level  int64 // count from which a key is looked at: least, less the bound
	pinned int   // keys that are tied to an entry
	marked int   // marks that are hot

	began  int64 // first pane that was seen from its start on; never: none
	newest int64 // newest pane that holds a count
	closed int64 // newest pane that is over and has been looked at
	busy   int64 // newest pane at whose end a key may have the least count
}

// threshold is one threshold of a rule.
type threshold struct {
	*hotparam.Threshold
	rule   *hotparam.Rule
	number int // among those of the rule
	view   *view
	ranking
}

// needs are the counts that decide on a key in one window: it is hot for certain
// if its low count is at least enter, which is [hotparam.Unknown] when that
// cannot be told; it may be hot if its high count is at least maybe; once hot
// it stays so for certain unless its high count is below exit.
type needs struct{ enter, maybe, exit int64 }

// ranking is the counts of a rule's keys in the newest window that is over, of
// those that have the least count, the highest first.
type ranking struct {
	lows, highs []int64
	pane        int64 // never: nothing ranked yet
	floor       int64 // the most that another key can have beyond the least count
	unknown     bool  // some high count is not known, or some key
}

// watched is what is known of a key that is hot or suspect, besides its counts.
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
	family            // whom it explains, and who explains it
	habit             // whether it is usual

	meter *meter // of a hot key

	suspect   *threshold // the one that the key may have passed; nil: none
	suspected time.Time
	exception *hotparam.Exception
	origins   *origins // instances
	routes    *origins
	callers   *origins
	top       *hotparam.Attribution // as it was told last
}

// mark is what one threshold says of a key.
type mark struct {
	hot   bool
	need  int64     // the count that made the key hot, as it was known last; 0: never
	over  time.Time // when the window is over that made the key hot
	hold  time.Time // it does not cool before
	below time.Time // end of the first window of those that were below the exit in a row
}

// family is what a hot key has to do with others of its rule.
type family struct {
	parsed    bool
	route     string   // what stands before the parameters
	params    []string // escaped; none: they cannot be told, or are too many
	names     string   // of the parameters
	general   []general
	heir      *watched // of the more specific ones that are hot: which has most of its traffic
	heirHigh  int64    // and how much that is at most; hotparam.Unknown: cannot be told
	yields    bool     // its traffic is its heir's
	keeps     bool     // is to be listed, as far as is decided
	explains  int      // more specific ones that are hot and not listed
	confirmed bool     // listed by a window that is over
	listedAt  time.Time
	published listing // as it was published last
}

// listing is how a key is listed.
type listing struct{ listed, usual, spared bool }

// general is a key that is more general than another.
type general struct {
	text   string
	set    uint   // of the other's parameters
	others string // names of those that it has not
}

// habit is what is known of a hot key's windows before the present one.
type habit struct {
	windows    [decode.BaselineWindows + 2]habitWindow // by number, modulo their number
	hotSince   time.Time
	usual      bool
	byShare    bool // on nine tenths of the route's requests when that was looked at last
	usualSince time.Time
	spared     bool
	exceeds    bool // what is not explained is a threshold above the mean, or was and is half of one
	kin
}

// habitWindow is one whole window.
type habitWindow struct {
	seen      bool
	end       int64 // its last pane
	low, high int64
	byShare   bool // the key was on nine tenths of the route's requests
}

// kin is what a hot key has to do with others, by the windows that are over.
type kin struct {
	related   bool       // a key is listed that is not usual, and is related to this one
	explained int64      // of this key's count by such keys, at most; hotparam.Unknown: any part of it
	parts     []part     // of its count that hot keys beside it have at least
	specifics []*watched // the more specific keys that are hot
}

// part is what keys of the same names have of another's count: a request has one
// of them, or as many as it repeats parameters.
type part struct {
	names    string
	repeated int64 // see [repeats.most]
	all      groupTally
	unusual  groupTally // keys that are not usual
}

// groupTally adds up the low counts of keys of one group to what their requests are at least.
type groupTally struct {
	sum, highest int64
}

func (t *groupTally) add(low int64) { t.sum, t.highest = t.sum+low, max(t.highest, low) }

// atLeast returns how many requests have one of the keys at least, when so many count
// for another of the group as well; [hotparam.Unknown] leaves those of one key.
func (t *groupTally) atLeast(repeated int64) int64 {
	if repeated == hotparam.Unknown {
		return t.highest
	}
	return max(t.highest, t.sum-repeated)
}

// standing is how a key stands in one window of a view.
type standing struct {
	entry int32 // in the view; -1: none
	low   int64 // the low count
	pane  int64 // the last pane of the window
}

// candidate is a key that is judged.
type candidate struct {
	standing
	w    *watched // what is known of the key; nil: nothing
	text []byte
	hash uint64
	when time.Time // of the newest count, or the end of the window
}
