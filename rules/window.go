package rules

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Bounds of a rule's window.
const (
	MinWindow = time.Second
	MaxWindow = time.Hour
)

// Window is the half-open time that a rule counts over: the last D, in panes aligned to the Unix
// epoch, including the current pane, which is partly filled. So it never spans more than D, and
// its count is never more than that of some continuous half-open window of D.
type Window struct {
	Pane  time.Duration // width of a pane: max(100 ms, D/60)
	Panes int           // number of panes in the window: ⌊D/Pane⌋, 10 to 60
}

// NewWindow returns the panes of a window of d, which is 1 s to 1 h.
func NewWindow(d time.Duration) Window {
	pane := max(base.FlushInterval, d/60)
	return Window{Pane: pane, Panes: int(d / pane)}
}

// Index returns the number of the pane that holds t, counted from the Unix epoch.
func (w Window) Index(t time.Time) int64 { return base.FloorDiv(t.UnixNano(), int64(w.Pane)) }

// Start returns the first instant of pane i.
func (w Window) Start(i int64) time.Time { return time.Unix(0, i*int64(w.Pane)) }
