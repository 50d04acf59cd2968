package window

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
)

// listedPart is the part of the room for texts that keys below NameFrom may use, so that they take
// none from keys near a threshold.
const listedPart = 8

// ListFrom gives keys a text from a count on that may be below that of NameFrom, as long as they have
// a small part of the room. From then on the window knows the counts of all keys together, which
// [Window.Rest] needs.
func (w *Window) ListFrom(count int64) {
	w.names.list = max(1, count)
	w.names.setText()
	if w.all.IsZero() {
		w.all = ring.New(w.ring)
	}
}

// Named returns the number of keys with a text.
func (w *Window) Named() int { return len(w.names.all) - len(w.names.free) }

// LacksRoomToList reports whether a key that was to be listed had no room for its text in the newest
// second or pane.
func (w *Window) LacksRoomToList() bool {
	return w.names.noRoom >= w.now-max(1, int64(time.Second/w.Pane))
}

// EachNamed calls f for the keys with a text that count in the panes from first to last, with the
// count there. f may change nothing.
func (w *Window) EachNamed(first, last int64, f func(i int32, n int64)) {
	for k := range w.names.all {
		name := &w.names.all[k]
		if name.entry == 0 {
			continue
		}
		e := w.arena.unit(name.entry)
		if w.recent(e[entryLast]) < first {
			continue
		}
		if n := w.total(e, last, last-first+1); n > 0 {
			f(int32(name.entry), n)
		}
	}
}

// Unnamed returns the most that a key without a text can count in some panes that end with the pane
// last, or [published.Unknown]. from is the highest count of ListFrom in that time, and hidden the most
// that is hidden of any key.
func (w *Window) Unnamed(first, last, from, hidden int64) int64 {
	lacks := w.lacksAnyIn(first, last)
	switch {
	case w.NamesRanOut(last) || lacks == published.Unknown || w.lost >= first || w.beforeStart >= first:
		return published.Unknown
	case w.names.noRoom >= first || from > w.names.from:
		from = w.names.from
	}
	return from - 1 + hidden + lacks
}

// Rest returns the bounds of the other counts in the panes from first to last, if n are those of some
// keys. When memory is full these keys may have a few of them, too.
func (w *Window) Rest(first, last, n int64) (low, high int64) {
	low, high = max(0, w.all.Sum(last, last-first+1)-n), published.Unknown
	lacks := w.lacksAnyIn(first, last)
	// heldBack bounds the counts of any one key, and nothing bounds their sum.
	if w.heldBack == 0 && lacks != published.Unknown && w.lost < first && w.beforeStart < first {
		high = low + lacks + w.hidden.Sum(last, last-first+1)
	}
	return low, high
}

// lacksAnyIn returns how many counts of all keys together may be missing in some panes, or
// [published.Unknown].
func (w *Window) lacksAnyIn(first, last int64) int64 {
	if w.missing.isNothing() {
		return 0
	}
	s := w.missing.lossOfAny(w.rule, w.Start(first).UnixNano(), w.Start(last+1).UnixNano())
	if s.lacks == published.Unknown {
		return published.Unknown
	}
	return s.lacks + s.before
}
