package window

import "math"

// unit is 32 bytes of a window's memory: an entry, or a block of an entry's
// panes. Both are the same size and come from one arena, so that room flows
// from many keys of few panes to few keys of many, and back.
//
//	entry: hash (2 words) · sum (2) · last · cur · hist · name
//	block: start · next · counts of 6 panes
//	free:  – · next
type unit [8]uint32

// An entry counts one key: its hash, the count of the newest pane that has one,
// the sum of the window that ends with that pane, and the panes before it, as
// long as they are kept, in blocks of six. A block begins with the pane that
// needed it first; blocks are a ring by their next, from the oldest to the
// newest, which hist names. What a cold key takes is the entry alone. Panes are
// written by the low half of their number.
//
// While the sum is far from a threshold, what leaves the window is not taken off
// it: that would mean to read the oldest block, which is in no cache, each time a
// pane turns. Such a sum is loose: a bound, made exact before it is used.

// Places in a unit.
const (
	entryLast = 4 // newest pane
	entryCur  = 5 // its count
	entryHist = 6 // newest block; 0: none. Its highest bit: the sum is loose; two more: marks
	entryName = 7 // number in names; 0: none

	blockStart  = 0 // first pane
	blockNext   = 1 // the next newer block; of the newest the oldest
	blockCounts = 2 // of the panes from the first on

	blockPanes = 6
	loose      = 1 << 31
)

func (e *unit) hash() uint64 { return uint64(e[0]) | uint64(e[1])<<32 }

func (e *unit) setHash(h uint64) { e[0], e[1] = uint32(h), uint32(h>>32) }

func (e *unit) sum() int64 { return int64(uint64(e[2]) | uint64(e[3])<<32) }

func (e *unit) setSum(n int64) { e[2], e[3] = uint32(n), uint32(uint64(n)>>32) }

func (e *unit) hist() uint32 { return e[entryHist] &^ (loose | marks) }

func (e *unit) setHist(at uint32) { e[entryHist] = e[entryHist]&(loose|marks) | at }

func (e *unit) loose() bool { return e[entryHist]&loose != 0 }

// Marks of entries, beside the number in entryHist.
const (
	sampled = 1 << 30 // some of its counts may be guessed: there was a second entry
	guessed = 1 << 29 // it is a second entry
	marks   = sampled | guessed

	maxUnits = guessed - 1
)

func (e *unit) isSampled() bool { return e[entryHist]&sampled != 0 }

func (e *unit) isGuess() bool { return e[entryHist]&guessed != 0 }

// addTo adds n to a pane, which stays at its highest when it is full.
func addTo(pane *uint32, n int64) bool {
	room := int64(math.MaxUint32 - *pane)
	*pane += uint32(min(n, room))
	return n <= room
}
