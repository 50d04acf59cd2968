package window

import "bytes"

// names hold the texts of keys whose count came near a threshold, in their own part of the
// memory. An entry gets its text when a count of its key arrives. It loses the text when its
// count is far below, or when another entry needs the room. A key that has a text is found by its
// bytes, and others by their keyed hash.
type names struct {
	from int64 // count from which on a key has its text
	// list is a lower count from which on keys have their text if there is plenty of room, or 0; see
	// ListFrom. noRoom is the newest pane in which such a key had none. text is the lower of from
	// and list.
	list, text, noRoom int64
	// After from was lowered, a key between the two values has no text before its next count.
	// above is the higher value, which is in force while a window may hold the pane lowered.
	above    int64
	lowered  int64
	all      []keptName
	free     []uint32
	hand     int // where the search for a text to drop continues
	bytes    int64
	maxBytes int64
	short    int64 // newest pane in which some key had no room for its text, or ring.Never
}

// keptName is the text of one entry.
type keptName struct {
	text  []byte
	tag   *Tag
	entry uint32 // 0 if not in use
}

// nameSize is the memory of a text in addition to its bytes: its keptName, its number in the free
// list, and the spare capacity of slices.
const nameSize = 56

// NameFrom sets the count from which on keys have their text.
func (w *Window) NameFrom(count int64) {
	n := &w.names
	count = max(1, count)
	if count < n.from {
		n.above, n.lowered = max(n.from, n.unnamedFrom(w.now-w.ring)), w.now
	}
	n.from = count
	n.setText()
}

// setText sets the count from which on a key gets its text.
func (n *names) setText() {
	if n.text = n.from; n.list > 0 {
		n.text = min(n.from, n.list)
	}
}

// unnamedFrom returns a count that no key without a text reaches in a window that ends after a
// pane, except for keys whose text had no room (NamesRanOut).
func (n *names) unnamedFrom(pane int64) int64 {
	if n.lowered > pane {
		return max(n.from, n.above)
	}
	return n.from
}

// Name returns an entry's text, or nil if it has none. It must not be changed, and is valid
// until the next Add or Tidy.
func (w *Window) Name(i int32) []byte {
	if k := w.arena.unit(uint32(i))[entryName]; k != 0 {
		return w.names.all[k-1].text
	}
	return nil
}

// Tag is a caller's data for an entry. While it is Pinned the entry is not evicted, and keeps
// its text and its number.
type Tag struct {
	Pinned bool
	Owner  any // data that the caller finds by the entry
}

// Tag returns the tag of an entry, or nil.
func (w *Window) Tag(i int32) *Tag {
	if k := w.arena.unit(uint32(i))[entryName]; k != 0 {
		return w.names.all[k-1].tag
	}
	return nil
}

// Tie ties a tag to an entry. A nil tag unties it. Tie reports whether the entry has a text,
// and so a place for a tag.
func (w *Window) Tie(i int32, t *Tag) bool {
	k := w.arena.unit(uint32(i))[entryName]
	if k != 0 {
		w.names.all[k-1].tag = t
	}
	return k != 0
}

func (n *keptName) size() int64 { return nameSize + int64(cap(n.text)) }

func (n *keptName) pinned() bool { return n.tag != nil && n.tag.Pinned }

// pinned reports whether an entry must not be evicted.
func (w *Window) pinned(e *unit) bool {
	return e[entryName] != 0 && w.names.all[e[entryName]-1].pinned()
}

// Each calls f for the entries that have a text and count at least from in the window that ends
// now. f may call Tie, but not Add.
func (w *Window) Each(from int64, f func(i int32)) {
	for k := range w.names.all {
		if n := &w.names.all[k]; n.entry != 0 {
			if e := w.arena.unit(n.entry); w.currentBound(e) >= from && w.total(e, w.now, int64(w.Panes)) >= from {
				f(int32(n.entry))
			}
		}
	}
}

// giveText gives an entry its text, if there is room or texts with smaller counts can be dropped
// for it.
func (w *Window) giveText(i uint32, e *unit, text []byte, sum int64) {
	n := &w.names
	size := int64(len(text)*9/8 + nameSize + 16) // a clone's capacity may be an eighth and 16 bytes larger
	if size > n.maxBytes && sum >= n.from {
		n.short = w.now
		return
	}
	if sum < n.from && n.bytes+size > n.maxBytes/listedPart {
		n.noRoom = w.now
		return
	}
	for n.bytes+size > n.maxBytes {
		n.short = w.now // this text or the dropped one has no room
		k := w.leastNamed(sum)
		if k < 0 {
			return
		}
		w.dropText(w.arena.unit(n.all[k].entry))
	}
	if len(n.free) == 0 {
		n.all = append(n.all, keptName{})
		n.free = append(n.free, uint32(len(n.all)))
	}
	k := n.free[len(n.free)-1]
	n.free = n.free[:len(n.free)-1]
	n.all[k-1] = keptName{text: bytes.Clone(text), entry: i}
	n.bytes += n.all[k-1].size()
	e[entryName] = k
}

// leastNamed returns the text with the smallest count below sum among the next few, or -1.
func (w *Window) leastNamed(sum int64) int {
	n := &w.names
	best := -1
	for looked := 0; looked < victims && looked < len(n.all); looked++ {
		if n.hand++; n.hand >= len(n.all) {
			n.hand = 0
		}
		k := &n.all[n.hand]
		if k.entry == 0 || k.pinned() {
			continue
		}
		if c := w.currentBound(w.arena.unit(k.entry)); c < sum {
			best, sum = n.hand, c
		}
	}
	return best
}

// dropText removes an entry's text, if it has one.
func (w *Window) dropText(e *unit) {
	k := e[entryName]
	if k == 0 {
		return
	}
	n := &w.names.all[k-1]
	w.names.bytes -= n.size()
	*n = keptName{}
	w.names.free = append(w.names.free, k)
	e[entryName] = 0
}

// NamesRanOut reports whether the window that ends with a pane may have keys of high counts
// without a text, for lack of room.
func (w *Window) NamesRanOut(end int64) bool { return w.names.short > end-int64(w.Panes) }

// GiveName gives an entry a text, if it has none. It may drop texts of keys that count less
// than sum.
func (w *Window) GiveName(i int32, text []byte, sum int64) {
	if w.Name(i) == nil {
		w.giveText(uint32(i), w.arena.unit(uint32(i)), text, sum)
	}
}
