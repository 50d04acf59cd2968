package window

import "math"

// unit is 32 bytes of a window's memory: an entry, or a block of an entry's panes. Both have
// the same size and come from one arena. So memory serves many keys with few panes or few keys with
// many panes.
//
//	entry: hash (2 words) · sum (2) · last · cur · hist · name
//	block: start · next · counts of 6 panes
//	free:  – · next
type unit [8]uint32

// An entry counts one key. It holds the key's hash, the count of its newest pane, and the sum
// of the window that ends with that pane. The earlier panes that are kept are in blocks of
// six. A block begins with the pane for which it was added. Blocks form a ring by their next,
// from the oldest to the newest, which hist names. A cold key takes the entry alone. A pane is
// stored as the low 32 bits of its number; see Window.forget.
//
// While the sum is far from a threshold, panes that leave the window are not subtracted from
// it. That would read the oldest block, which is in no cache, at each change of pane. Such a
// sum is stale: an upper bound, made exact before it is used.

// Places in a unit.
const (
	entryLast = 4 // newest pane
	entryCur  = 5 // count of the newest pane
	entryHist = 6 // newest block, or 0. The highest bit means that the sum is stale; two more are marks
	entryName = 7 // number in names, or 0

	blockStart  = 0 // first pane
	blockNext   = 1 // next newer block; for the newest block, the oldest
	blockCounts = 2 // counts of the panes from the first on

	blockPanes = 6
	staleSum   = 1 << 31
)

func (e *unit) hash() uint64 { return uint64(e[0]) | uint64(e[1])<<32 }

func (e *unit) setHash(h uint64) { e[0], e[1] = uint32(h), uint32(h>>32) }

func (e *unit) sum() int64 { return int64(uint64(e[2]) | uint64(e[3])<<32) }

func (e *unit) setSum(n int64) { e[2], e[3] = uint32(n), uint32(uint64(n)>>32) }

func (e *unit) hist() uint32 { return e[entryHist] &^ (staleSum | marks) }

func (e *unit) setHist(block uint32) { e[entryHist] = e[entryHist]&(staleSum|marks) | block }

func (e *unit) isStale() bool { return e[entryHist]&staleSum != 0 }

// Marks of entries, in the high bits of entryHist. A key counted by sampled lines has a second entry
// for the guessed part of its count: see estimate.go.
const (
	sampled = 1 << 30 // the key has, or had, a second entry
	guessed = 1 << 29 // this is the second entry of a key
	marks   = sampled | guessed

	maxUnits = guessed - 1
)

func (e *unit) isSampled() bool { return e[entryHist]&sampled != 0 }

func (e *unit) isGuess() bool { return e[entryHist]&guessed != 0 }

// addTo adds n to a pane. If the pane is full, it stays at its maximum and addTo returns false.
func addTo(pane *uint32, n int64) bool {
	room := int64(math.MaxUint32 - *pane)
	*pane += uint32(min(n, room))
	return n <= room
}
