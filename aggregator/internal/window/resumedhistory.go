package window

import (
	"math"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/snapshot"
)

// Save returns the history of the key of entry i of the window, for a history that continues in
// another process. It returns nil if none is known.
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

// after returns the first pane of the history that lies completely after a pane of the window.
func (h *History) after(pane int64) int64 { return -base.FloorDiv(-pane-1, h.per) }

// Resume adds the saved history of a key from another process. It does nothing if the panes had
// another width, or if this process had already received counts when h was made.
func (h *History) Resume(hash uint64, text []byte, s *snapshot.History) {
	if s != nil && h.whole && s.Pane == h.Pane && s.Panes == h.Panes {
		h.resume(hash, text, s.Counts, &resumedKey{s.Bounds, s.Newest})
	}
}
