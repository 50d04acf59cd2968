package collector

import "github.com/hotparam/hotparam/internal/ring"

// paneCounts counts a key by pane, for the present window and the one before.
type paneCounts struct {
	counts ring.Counts
	panes  int64 // number of panes of a window
	newest int64 // pane that the present window ends with, or ring.Never

	complete int64 // time when a window that began with new rules is complete, or 0
}

func newPaneCounts(panes int64) paneCounts {
	return paneCounts{counts: ring.New(panes + 1), panes: panes, newest: ring.Never}
}

// add adds n counts to a pane. It ignores counts from before the window.
func (p *paneCounts) add(pane int64, n uint64) {
	if p.newest != ring.Never && pane < p.newest-2*p.panes { // the clock was set back
		*p = newPaneCounts(p.panes)
	}
	if p.advance(pane); pane > p.newest-p.panes {
		p.counts.Add(pane, int64(n))
	}
}

// advance moves the window forward to end with a pane.
func (p *paneCounts) advance(pane int64) { p.newest = max(p.newest, pane) }

// sum returns the count of the window.
func (p *paneCounts) sum() int64 { return p.counts.Sum(p.newest, p.panes) }

// previousSum returns the count of the window that ended when the newest pane began.
func (p *paneCounts) previousSum() int64 { return p.counts.Sum(p.newest-1, p.panes) }
