package window

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// History counts keys in the windows before the present one, in panes that are wider than the
// window's: about ten to a window.
type History struct {
	*Window
	of    int64 // panes of the window
	per   int64 // so many of them are one of these
	began int64 // first pane of the window that was seen from its start on; none: MaxInt64
	whole bool  // all counts since [History.Start] came here
	// Longest says that the rule has no longer window, so that collectors hold nothing back
	// for longer than this one.
	Longest bool
}

// NewHistory returns the history of a window: grace is how many of its panes a count may
// come late, and budget how many bytes the history may hold.
func NewHistory(w rules.Window, grace, budget int64) *History {
	h := &History{of: int64(w.Panes), per: int64(w.Panes+decode.BaselineWindows-1) / decode.BaselineWindows, began: math.MaxInt64}
	wide := rules.Window{
		Pane:  w.Pane * time.Duration(h.per),
		Panes: int((decode.BaselineWindows+1)*h.of+h.straddle())/int(h.per) + 3,
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

// straddle returns how many panes before its time a held-back count can be placed: a window,
// and an eighth of that since collectors round.
func (h *History) straddle() int64 { return h.of + h.of/8 + 1 }

// Baseline bounds the count of entry i of the window in the ten windows before the one
// that ends with pane last, or as much of them as was seen with no loss since, but at
// least one: windows is how many that is. high is [rules.Unknown] if it is not known.
//
// When the window is over, all of the baseline that was held back has come, or is part of
// no claim. Then what a flood can hide of a key is what it counted just before.
func (h *History) Baseline(w *Window, i int32, text []byte, last int64, over bool) (low, high int64, windows rules.Fraction) {
	to := last - h.of
	hash := w.Hash(i)
	k, heard := h.resumedKey(hash), w.unheard+1
	if h.began > heard {
		heard = h.began
	} else if k != nil && k.Known <= base.FloorDiv(w.unheard, h.per) {
		heard = min(heard, k.Known*h.per)
	}
	from := max(to-decode.BaselineWindows*h.of+1, heard, w.lost+1)
	if h.began == math.MaxInt64 || to-from+1 < h.of {
		return 0, rules.Unknown, rules.Fraction{Num: 1, Den: 1}
	}
	windows = rules.Fraction{Num: to - from + 1, Den: h.of}
	first, end := base.FloorDiv(from, h.per), base.FloorDiv(to, h.per)
	if from > w.unheard {
		k = nil
	}
	// For low, only what lies between the two ends for certain.
	if inner, outer := -base.FloorDiv(-from, h.per), base.FloorDiv(to+1, h.per)-1; outer >= inner {
		low, _ = h.span(hash, text, outer, inner, k)
	}
	_, most := h.span(hash, text, end, first, k)
	if over && h.Longest && h.held > 0 && most != rules.Unknown {
		early := base.FloorDiv(from-h.straddle(), h.per)
		if _, all := h.span(hash, text, end, early, k); all != rules.Unknown {
			most = min(most, all-h.held)
		}
	}
	if most == rules.Unknown {
		return low, rules.Unknown, windows
	}
	// The newest pane reaches into the present window, which is no baseline.
	if over := (end+1)*h.per - 1; over > to {
		present, _ := w.Span(hash, text, over, over-to)
		most = max(0, most-present)
	}
	return low, most, windows
}

// span is like Span, for panes from first to end. k is what another process counted of the key
// in some of them, or nil.
func (h *History) span(hash uint64, text []byte, end, first int64, k *resumedKey) (low, high int64) {
	if at := h.lookup(hash, text); at != 0 {
		low = h.total(h.arena.unit(at), end, end-first+1)
	}
	low, high = h.heardBound(hash, text, low, end, end-first+1)
	if k == nil {
		return low, high
	}
	lacks, later := k.lacks(end, first)
	return max(0, low-later), plus(high, lacks)
}
