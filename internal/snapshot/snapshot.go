// Package snapshot encodes the state of an aggregator, so that the next one has it after a
// restart. It records the last counted packet of each sender. It also has the counts, up to those
// packets, of the keys near a threshold and of the references that keys are compared with.
//
// All are of one instant, the cut. Each packet was counted in the windows and in its sender's
// position, or in neither. So packets that the next aggregator does not receive are missing
// like packets lost in transit, and heal like those.
package snapshot

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Snapshot is the state at a cut.
type Snapshot struct {
	Cut time.Time
	// Plain reports whether counts arrived lately from senders that do not report their sums.
	// How many of their counts are missing cannot be known.
	Plain   bool
	Rules   []string        // texts of everything that the counts of each rule depend on
	Carried map[uint64]bool // IDs of gaps that are carried; not encoded
	Senders []Sender
	Keys    []RuleKey // keys in the order in which they should be kept
	// References hold the totals and bounds that keys are compared with, at most one for each
	// window of a rule.
	References []ReferenceValues
	// Costs is what is known of the usual costs of keys, in a form of the aggregator's own. It is
	// left out if it is longer than [MaxCosts].
	Costs []byte
}

// Sender records how far a sender's packets were counted.
type Sender struct {
	Name         string
	Incarnation  uint64
	Seq          uint64    // newest packet; more of its lines may follow
	Sums         wire.Sums // sums of the next packet if no packet is missing
	Start        time.Time // start of packet Seq's flush
	Heard        time.Time // arrival of the newest packet
	First        uint64    // each packet from this one on has arrived or is in a gap
	Opened       uint64    // accounts up to this number may have counts from before the cut
	Owed         uint64    // missing counts on accounts from before the cut
	Since        time.Time // earliest time of the counts in Owed
	PrunedTo     uint64    // newest packet whose missing counts are no longer awaited
	PrunedOpened uint64    // accounts opened by then
	PrunedFrom   time.Time // earliest time of those counts
	ByRule       Sums
	Carried      Carried
	Accounts     []AccountRange // accounts of all keys; they are encoded with their keys
}

// Sums record how far a sender's sums by rule were counted. The sums that the sender reports next
// show the loss since packet Seq.
type Sums struct {
	Seq uint64
	// Have are the sums if no packet since Seq is missing: for each rule the loose counts, then
	// the counts on accounts. Nil means that they are unknown.
	Have []uint64
}

// Carried is the loss in gaps that ended shortly before the cut. Keys are saved without these
// gaps; the gap of the restart includes them.
type Carried struct {
	Seq                     uint64 // first packet; 0 if there are none
	Opened                  uint64 // number of accounts opened before that packet
	Loose, Booked, HeldBack uint64
	From, To                time.Time
}

// AccountRange is the counted range of a key's account.
type AccountRange struct {
	Sender            int    // index of the sender
	Hash              uint64 // hash of the key, in this process
	Rule              int    // index of the rule, in this process
	Number, Low, High uint64 // number of the account; its totals at the ends of the counted range
	Seq               uint64
	Heard             int64 // time in ns since the Unix epoch
}

// RuleKey is a key of a rule.
type RuleKey struct {
	Rule     int // index of the rule
	Text     []byte
	Views    []WindowCounts
	Accounts []AccountRange
	Nearness float64 // nearness to its threshold; not encoded
}

// WindowShape is the shape of a window, and its place in time.
type WindowShape struct {
	Pane   time.Duration
	Panes  int
	Newest int64 // pane at the cut
}

// Counted holds a key's counts in the panes of a window, and bounds what windows lack.
type Counted struct {
	WindowShape
	Counts []Pane
	Bounds
}

// WindowCounts is a key's counts in a window of its rule.
type WindowCounts struct {
	Counted
	Below   []Below
	History *Counted // counts in earlier windows, in wider panes; nil without a jump
}

// Pane is a count in a pane.
type Pane struct{ Pane, N int64 }

// ReferenceValues holds the values that the keys of a rule are compared with in one of its windows.
type ReferenceValues struct {
	Rule int // index of the rule
	WindowShape
	// Others bound the counts of each key that is not in the snapshot.
	Others Bounds
	Groups *GroupTotals // nil without a share
}

// GroupTotals are the totals of groups of keys, by pane. The bounds apply to the counts of all keys
// together.
type GroupTotals struct {
	Bounds
	Named []Group // largest groups
	// Strays holds the counts of all other groups, and those whose group is not known. AllAgain holds
	// the repeats (see Group.Again) of all groups.
	Strays   Group
	AllAgain []Pane
}

// Group holds the counts of a group. Again holds the repeats: counts of requests that another key of
// the group has counted already.
type Group struct {
	Name          []byte
	Counts, Again []Pane
}

// Bounds bound the counts that a key may lack.
type Bounds struct {
	Known int64  // windows that begin before this pane have unknown bounds
	Lacks []Lack // ascending by From; the last one at or before a window's first pane bounds its lack
	Later int64  // most counts in windows that ended before the cut that may belong after them
}

// Lack is the number of counts that windows beginning at or after a pane may lack.
type Lack struct{ From, N int64 }

// Below reports that the windows of a threshold that ended between two instants were below its
// exit.
type Below struct {
	Of           string // text of everything that the exit depends on
	Since, Until time.Time
}

// LackFrom returns how many counts may be missing in a window that begins at pane first, or
// [published.Unknown].
func (b *Bounds) LackFrom(first int64) (lacks int64) {
	if first < b.Known {
		return published.Unknown
	}
	for _, l := range b.Lacks {
		if l.From <= first {
			lacks = l.N
		}
	}
	return lacks
}

// AddLack records that windows that begin at pane from or later may lack n counts. Calls go up in from.
func (b *Bounds) AddLack(from, n int64) {
	if last := len(b.Lacks) - 1; last < 0 && n > 0 || last >= 0 && b.Lacks[last].N != n {
		b.Lacks = append(b.Lacks, Lack{from, n})
	}
}

// MaxLack returns the highest lack of any window.
func (b *Bounds) MaxLack() (highest int64) {
	for _, l := range b.Lacks {
		highest = max(highest, l.N)
	}
	return highest
}

// Attach sets the keys of the snapshot, and adds their accounts from the senders.
func (s *Snapshot) Attach(keys []RuleKey) {
	type id struct {
		hash uint64
		rule int
	}
	s.Keys = keys
	byID := make(map[id]*RuleKey, len(keys))
	for i := range keys {
		k := &keys[i]
		byID[id{rules.Hash(k.Text), k.Rule}] = k
	}
	for i := range s.Senders {
		sender := &s.Senders[i]
		for _, a := range sender.Accounts {
			if k := byID[id{a.Hash, a.Rule}]; k != nil {
				k.Accounts = append(k.Accounts, a)
			}
		}
		sender.Accounts = nil
	}
}

// Renumber replaces the indexes of s.Rules by those of the same texts in rules. It drops the keys and
// references of rules that are not in rules, and reports whether any rule is.
func (s *Snapshot) Renumber(rules []string) (some bool) {
	numbers := make([]int, len(s.Rules))
	for i, r := range s.Rules {
		if numbers[i] = slices.Index(rules, r); r == "" {
			numbers[i] = -1
		}
		some = some || numbers[i] >= 0
	}
	for i := range s.Senders {
		s.Senders[i].ByRule.renumber(numbers, len(rules))
	}
	s.Keys = slices.DeleteFunc(s.Keys, func(k RuleKey) bool { return numbers[k.Rule] < 0 })
	for i := range s.Keys {
		s.Keys[i].Rule = numbers[s.Keys[i].Rule]
	}
	s.References = slices.DeleteFunc(s.References, func(r ReferenceValues) bool { return numbers[r.Rule] < 0 })
	for i := range s.References {
		s.References[i].Rule = numbers[s.References[i].Rule]
	}
	return some
}

// renumber moves the sums to other rule numbers, which are less than n, or -1 to drop them.
func (s *Sums) renumber(numbers []int, n int) {
	if s.Have == nil {
		return
	}
	have := make([]uint64, 2*n)
	for was, now := range numbers[:len(s.Have)/2] {
		if now >= 0 {
			copy(have[2*now:], s.Have[2*was:2*was+2])
		}
	}
	s.Have = have
}
