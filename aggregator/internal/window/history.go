package window

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// History counts keys in the windows before the current one, in panes that are wider than the
// window's: about ten to a window.
type History struct {
	*Window
	windowPanes int64 // number of the window's panes
	per         int64 // number of the window's panes in one pane of the history
	began       int64 // first pane of the window that was seen from its start on, or MaxInt64
	whole       bool  // whether all counts since [History.Start] came here
	// Longest reports whether the rule has no longer window, so that collectors hold nothing
	// back for longer than this one.
	Longest bool
}

// NewHistory returns the history of a window. grace is the number of its panes by which a count
// may be late, and budget the memory of the history in bytes.
func NewHistory(w rules.Window, grace, budget int64) *History {
	h := &History{windowPanes: int64(w.Panes), per: int64(w.Panes+decode.BaselineWindows-1) / decode.BaselineWindows, began: math.MaxInt64}
	wide := rules.Window{
		Pane:  w.Pane * time.Duration(h.per),
		Panes: int((decode.BaselineWindows+1)*h.windowPanes+h.straddle())/int(h.per) + 3,
	}
	h.Window = New(wide, (grace+h.per-1)/h.per+1, budget)
	h.bucketed = true
	h.NameFrom(math.MaxInt64) // its keys are found by their hash
	return h
}

// Restart returns an empty history of the same size.
func (h *History) Restart() *History {
	fresh := *h
	fresh.Window, fresh.began, fresh.whole = h.Window.Restart(), math.MaxInt64, false
	return &fresh
}

// Count adds a count.
func (h *History) Count(c *decode.Count) { h.Add(c.Hash, c.Text, h.PaneOf(c.When), c.N) }

// AdvanceTo moves the clock on to now; pane is that of the window.
func (h *History) AdvanceTo(now time.Time, pane int64) {
	h.Advance(h.Index(now))
	if h.began == math.MaxInt64 {
		h.began = pane + 1
	}
}

// straddle returns the number of panes by which a held-back count can be placed too early: a window,
// and an eighth of it since collectors round.
func (h *History) straddle() int64 { return h.windowPanes + h.windowPanes/8 + 1 }

// Baseline bounds the count of entry i of the window in the ten windows before the one that
// ends with pane last. If not all ten were seen without a later loss, it uses the part that
// was, of one window at least. windows is the length of that part. high is [published.Unknown] if
// it is not known.
//
// If the window has ended, as over reports, all held-back counts of the baseline have arrived,
// or are not claimed. Then a flood can hide only those counts of a key that came just before it.
func (h *History) Baseline(w *Window, i int32, text []byte, last int64, over bool) (low, high int64, windows rules.Fraction) {
	to := last - h.windowPanes
	hash := w.Hash(i)
	k, heard := h.resumedKey(hash), w.beforeStart+1
	if h.began > heard {
		heard = h.began
	} else if k != nil && k.Known <= base.FloorDiv(w.beforeStart, h.per) {
		heard = min(heard, k.Known*h.per)
	}
	from := max(to-decode.BaselineWindows*h.windowPanes+1, heard, w.lost+1)
	if h.began == math.MaxInt64 || to-from+1 < h.windowPanes {
		return 0, published.Unknown, rules.Fraction{Num: 1, Den: 1}
	}
	windows = rules.Fraction{Num: to - from + 1, Den: h.windowPanes}
	first, end := base.FloorDiv(from, h.per), base.FloorDiv(to, h.per)
	if from > w.beforeStart {
		k = nil
	}
	// For low, only the panes that are certainly between the two ends count.
	if inner, outer := -base.FloorDiv(-from, h.per), base.FloorDiv(to+1, h.per)-1; outer >= inner {
		low, _ = h.span(hash, text, outer, inner, k)
	}
	_, upper := h.span(hash, text, end, first, k)
	// The upper bound of span contains heldBack. Here those counts have arrived.
	if over && h.Longest && h.heldBack > 0 && upper != published.Unknown {
		early := base.FloorDiv(from-h.straddle(), h.per)
		if _, all := h.span(hash, text, end, early, k); all != published.Unknown {
			upper = min(upper, all-h.heldBack)
		}
	}
	if upper == published.Unknown {
		return low, published.Unknown, windows
	}
	// The newest pane overlaps the current window, which is not part of the baseline.
	if past := (end+1)*h.per - 1; past > to {
		present, _ := w.Span(hash, text, past, past-to)
		upper = max(0, upper-present)
	}
	return low, upper, windows
}

// span is like Span, for panes from first to end. k bounds the counts of the key from another
// process in some of them, or is nil.
func (h *History) span(hash uint64, text []byte, end, first int64, k *resumedKey) (low, high int64) {
	if entry := h.lookup(hash, text); entry != 0 {
		low = h.total(h.arena.unit(entry), end, end-first+1)
	}
	low, high = h.heardBound(hash, text, low, end, end-first+1)
	if k == nil {
		return low, high
	}
	lacks, later := k.lacks(end, first)
	return max(0, low-later), published.Plus(high, lacks)
}

// Save returns the history of the key of entry i of the window, for a history that continues in
// another process. It returns nil if none is known.
func (h *History) Save(w *Window, i int32) *snapshot.Counted {
	hash, text := w.Hash(i), w.Name(i)
	entry := h.lookup(hash, text)
	if entry == 0 || h.began == math.MaxInt64 || h.now == never {
		return nil
	}
	first := max(h.now-h.ring+1, h.after(w.lost))
	if h.began > w.beforeStart+1 {
		first = max(first, h.after(h.began-1))
	}
	if first > h.now {
		return nil
	}
	saved := &snapshot.Counted{WindowShape: snapshot.WindowShape{Pane: h.Pane, Panes: h.Panes, Newest: h.now}}
	saved.Counts, saved.Bounds = h.save(h.arena.unit(entry), text, first, false)
	return saved
}

// after returns the first pane of the history that lies completely after a pane of the window.
func (h *History) after(pane int64) int64 { return -base.FloorDiv(-pane-1, h.per) }

// Resume adds the saved history of a key from another process. It does nothing if the panes had
// another width, or if this process had already received counts when h was made.
func (h *History) Resume(hash uint64, text []byte, s *snapshot.Counted) {
	if s != nil && h.whole && s.Pane == h.Pane && s.Panes == h.Panes {
		h.Window.Resume(hash, text, s)
	}
}
