package collector

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// nextCut returns the first instant after t when a flush must be cut so that no count
// straddles two panes: the next multiple of [base.FlushInterval] or of a pane of one of the
// windows, whichever comes first.
func nextCut(t time.Time, windows []rules.Window) time.Time {
	cut := multipleAfter(t, base.FlushInterval)
	for _, w := range windows {
		if w.Pane%base.FlushInterval != 0 {
			if c := multipleAfter(t, w.Pane); c.Before(cut) {
				cut = c
			}
		}
	}
	return cut
}

// multipleAfter returns the first multiple of step, from the Unix epoch, after t.
func multipleAfter(t time.Time, step time.Duration) time.Time {
	n := base.FloorDiv(t.UnixNano(), int64(step)) + 1
	return t.Add(time.Duration(n*int64(step) - t.UnixNano())) // keeps t's monotonic reading
}
