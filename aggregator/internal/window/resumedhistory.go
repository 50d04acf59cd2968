package window

import (
	"math"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/snapshot"
)

// Save returns what the key of entry i of the window counted before, for a history that continues
// in another process, or nil if nothing is known.
func (h *History) Save(w *Window, i int32) *snapshot.History {
	hash, text := w.Hash(i), w.Name(i)
	at := h.lookup(hash, text)
	if at == 0 || h.began == math.MaxInt64 || h.now == never {
		return nil
	}
	first := max(h.now-h.ring+1, h.after(w.lost))
	if h.began > w.unheard+1 {
		first = max(first, h.after(h.began-1))
	}
	if first > h.now {
		return nil
	}
	saved := &snapshot.History{Pane: h.Pane, Panes: h.Panes, Newest: h.now}
	saved.Counts, saved.Bounds = h.save(h.arena.unit(at), text, first, false)
	return saved
}

// after returns the first pane of the history that holds nothing of a pane of the window and of
// those before it.
func (h *History) after(pane int64) int64 { return -base.FloorDiv(-pane-1, h.per) }

// Resume adds what another process saved of a key. It does nothing if that was of another width,
// or the history was made when the process had heard counts already.
func (h *History) Resume(hash uint64, text []byte, s *snapshot.History) {
	if s != nil && h.whole && s.Pane == h.Pane && s.Panes == h.Panes {
		h.resume(hash, text, s.Counts, &resumedKey{s.Bounds, s.Newest})
	}
}
