// Package snapshot encodes what an aggregator knows, so that the next one knows it after a
// restart: how far the packets of each sender were counted, and the counts up to there of the
// keys near a threshold, and of what they are compared with.
//
// All are of one instant, the cut. Each packet was counted in the windows and in its sender's
// position, or in neither. So the packets that the next aggregator does not hear are missing
// as packets lost on the way are, and heal as those do.
package snapshot

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Snapshot is the state at a cut.
type Snapshot struct {
	Cut time.Time
	// Plain says that counts came lately of senders that do not report their sums: how much
	// of theirs is missing cannot be known.
	Plain   bool
	Rules   []string        // what the counts of each rule depend on
	Carried map[uint64]bool // the IDs of gaps that are carried; not encoded
	Senders []Sender
	Keys    []Key // those to keep first come first
	// References are what keys are compared with, at most one for each window of a rule.
	References []Reference
}

// Sender is how far a sender's packets were counted.
type Sender struct {
	Name         string
	Incarnation  uint64
	Seq          uint64    // the newest packet, of which more can come
	Sums         wire.Sums // as they have to be before the next one
	Start        time.Time // of that packet's flush
	Heard        time.Time
	First        uint64 // from this packet on each has come or is in a gap
	Opened       uint64 // accounts up to this one can have counts of before the cut
	Owed         uint64 // counts on accounts that are missing before the cut
	Since        time.Time
	PrunedTo     uint64 // the newest packet whose counts are owed no more
	PrunedOpened uint64
	PrunedFrom   time.Time
	ByRule       Sums
	Carried      Carried
	Accounts     []Account // of all keys; they are encoded with their keys
}

// Sums are how far a sender's sums by rule were counted: the next statement of them shows what is
// missing since the packet Seq.
type Sums struct {
	Seq uint64
	// Have are the sums if nothing is missing since Seq: for each rule of loose counts, and of
	// counts on accounts. Nil means that nothing is known.
	Have []uint64
}

// Carried is what was missing in gaps that ended shortly before the cut. Keys are saved as if there
// were none: the gap of the restart has them.
type Carried struct {
	Seq                     uint64 // the first packet; 0 if there are none
	Opened                  uint64 // accounts before that
	Loose, Booked, HeldBack uint64
	From, To                time.Time
}

// Account is what was counted of a key's account.
type Account struct {
	Sender            int    // its place among the senders
	Hash              uint64 // of the key, in this process
	Rule              int    // its number, in this process
	Number, Low, High uint64
	Seq               uint64
	Heard             int64 // in ns since the Unix epoch
}

// Key is a key of a rule.
type Key struct {
	Rule     int // its place among the rules
	Text     []byte
	Views    []View
	Accounts []Account
	Nearness float64 // to its threshold; not encoded
}

// View is a key's counts in a window of its rule.
type View struct {
	Pane   time.Duration
	Panes  int
	Newest int64 // the pane at the cut
	Counts []Pane
	Bounds
	Below   []Below
	History *History // nil without a jump
}

// History is what a key counted in the windows before, in panes of the history's width.
type History struct {
	Pane   time.Duration
	Panes  int
	Newest int64
	Counts []Pane
	Bounds
}

// Pane is a count in a pane.
type Pane struct{ Pane, N int64 }

// Reference is what the keys of a rule are compared with in one of its windows.
type Reference struct {
	Rule   int // its place among the rules
	Pane   time.Duration
	Panes  int
	Newest int64 // the pane at the cut
	// Others bound the counts of each key that is not in the snapshot.
	Others Bounds
	Groups *Groups // nil without a share
}

// Groups are the totals of groups of keys, by pane. The bounds are of the counts of all keys
// together.
type Groups struct {
	Bounds
	Named []Group // the largest; what the others have is among the strays
	// Strays are counts of which the group is not known, and AllAgain those of all groups that
	// count a request again.
	Strays   Group
	AllAgain []Pane
}

// Group is the counts of a group, and those of them that count a request again.
type Group struct {
	Name          []byte
	Counts, Again []Pane
}

// Bounds are what the counts of a key may lack.
type Bounds struct {
	Known int64  // nothing is known of panes before this one
	Lacks []Lack // in ascending order; the last at or before a window's first pane is what it may lack
	Later int64  // so many of the counts of windows that were over at the cut may be of later
}

// Lack is how many counts windows may lack that begin at or after a pane.
type Lack struct{ From, N int64 }

// Below says that the windows of a threshold that ended between two instants were below its
// exit.
type Below struct {
	Of           string // what the exit depends on
	Since, Until time.Time
}

// At returns how many counts a window may lack that begins at a pane, or [rules.Unknown].
func (b *Bounds) At(first int64) (lacks int64) {
	if first < b.Known {
		return rules.Unknown
	}
	for _, l := range b.Lacks {
		if l.From <= first {
			lacks = l.N
		}
	}
	return lacks
}

// AddLack appends that windows which begin at a pane or later may lack n.
func (b *Bounds) AddLack(from, n int64) {
	if last := len(b.Lacks) - 1; last < 0 && n > 0 || last >= 0 && b.Lacks[last].N != n {
		b.Lacks = append(b.Lacks, Lack{from, n})
	}
}

// Most returns the most that a window may lack, wherever it begins.
func (b *Bounds) Most() (most int64) {
	for _, l := range b.Lacks {
		most = max(most, l.N)
	}
	return most
}

// Attach makes keys those of the snapshot, with the accounts that senders have of them.
func (s *Snapshot) Attach(keys []Key) {
	type id struct {
		hash uint64
		rule int
	}
	s.Keys = keys
	at := make(map[id]*Key, len(keys))
	for i := range keys {
		k := &keys[i]
		at[id{rules.Hash(k.Text), k.Rule}] = k
	}
	for i := range s.Senders {
		of := &s.Senders[i]
		for _, a := range of.Accounts {
			if k := at[id{a.Hash, a.Rule}]; k != nil {
				k.Accounts = append(k.Accounts, a)
			}
		}
		of.Accounts = nil
	}
}

// Number gives the keys the numbers of the rules that count as those of the snapshot did, and
// drops the keys of others. It reports whether there is such a rule.
func (s *Snapshot) Number(rules []string) (some bool) {
	numbers := make([]int, len(s.Rules))
	for i, r := range s.Rules {
		if numbers[i] = slices.Index(rules, r); r == "" {
			numbers[i] = -1
		}
		some = some || numbers[i] >= 0
	}
	for i := range s.Senders {
		s.Senders[i].ByRule.number(numbers, len(rules))
	}
	s.Keys = slices.DeleteFunc(s.Keys, func(k Key) bool { return numbers[k.Rule] < 0 })
	for i := range s.Keys {
		s.Keys[i].Rule = numbers[s.Keys[i].Rule]
	}
	s.References = slices.DeleteFunc(s.References, func(r Reference) bool { return numbers[r.Rule] < 0 })
	for i := range s.References {
		s.References[i].Rule = numbers[s.References[i].Rule]
	}
	return some
}

// number gives the rules of s other numbers, which are less than n, or -1.
func (s *Sums) number(numbers []int, n int) {
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
