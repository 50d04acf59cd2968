package window

import (
	"math"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/ring"
)

// cells count the keys that have no entry. All keys of one cell share a bound. They are the
// cells of Filtered Space-Saving (Homem & Carvalho 2010), extended over time. There a cell
// keeps the maximum of its hidden counts, which is no bound when keys come and go. Here it
// keeps their sum. A cell's time is coarser than the window's panes: seven spans cover all kept
// panes. A bound that expires up to a span late costs less than fewer cells would, since the
// hidden counts of a cell fall with the number of cells.
type cells struct {
	all   []cell
	size  int         // number of cells, once there are any
	panes int64       // number of the window's panes
	span  int64       // number of panes in a span
	base  int64       // spans are counted from here, so that an unused cell is old
	sum   ring.Counts // counts of all cells by span
	bar   float64     // bound above which a cell stands out
	stale int         // number of additions until bar is computed again
}

// cell holds the low half of its newest span's number, and counts by span.
type cell [1 + cellSpans]uint32

const (
	cellSpans = 7
	cellSize  = 4 * (1 + cellSpans)
	// refreshBar is the number of additions after which the bar is computed again.
	refreshBar = 64
)

func newCells(panes, kept, budget int64) cells {
	return cells{
		size:  max(1, int(budget/cellSize)),
		panes: panes,
		span:  max(1, (kept+cellSpans-3)/(cellSpans-1)), // the kept panes touch seven spans at most
	}
}

// spans returns the first and the last span of some panes that end with a pane.
func (c *cells) spans(end, panes int64) (from, to int64) {
	return max(0, base.FloorDiv(end-panes+1, c.span)-c.base), base.FloorDiv(end, c.span) - c.base
}

func (c *cells) cellOf(hash uint64) *cell {
	return &c.all[uint64(uint32(hash>>16))*uint64(len(c.all))>>32]
}

// reset forgets everything.
func (c *cells) reset() { c.all = nil }

// add adds n to the cell of a hash. It returns false if the cell cannot hold so much.
func (c *cells) add(hash uint64, pane, n int64) bool {
	span := base.FloorDiv(pane, c.span) - c.base
	if c.all == nil {
		c.all = make([]cell, c.size)
		c.base += span - 3*cellSpans
		c.sum, c.stale, span = ring.New(cellSpans), 0, 3*cellSpans
	}
	c.sum.Add(span, n)
	if c.stale--; c.stale < 0 {
		c.refresh(pane)
	}
	return c.cellOf(hash).add(span, n)
}

func (l *cell) add(span, n int64) bool {
	ahead := int64(int32(uint32(span) - l[0]))
	if ahead >= cellSpans {
		*l = cell{uint32(span)}
	} else if ahead > 0 {
		for s := span - ahead + 1; s <= span; s++ {
			l[1+s%cellSpans] = 0
		}
		l[0] = uint32(span)
	}
	return addTo(&l[1+span%cellSpans], n)
}

// bound returns the most that a key with the hash can count in some panes that end with a pane,
// in addition to its entry.
func (c *cells) bound(hash uint64, end, panes int64) int64 {
	if c.all == nil {
		return 0
	}
	from, to := c.spans(end, panes)
	return c.cellOf(hash).bound(from, to)
}

func (l *cell) bound(from, to int64) (sum int64) {
	for span := from; span <= to; span++ {
		if l[0]-uint32(span) < cellSpans {
			sum += int64(l[1+span%cellSpans])
		}
	}
	return sum
}

// worst returns the highest bound of all keys in the window that ends with a pane.
func (c *cells) worst(end int64) (worst int64) {
	from, to := c.spans(end, c.panes)
	for i := range c.all {
		worst = max(worst, c.all[i].bound(from, to))
	}
	return worst
}

// standsOut reports whether a key that adds n now stands out by more than count. A cell stands
// out by the amount above the mean of the cells plus twice the deviation that many small keys
// cause by chance.
func (c *cells) standsOut(hash uint64, end, n, count int64) bool {
	return c.all != nil && float64(c.bound(hash, end, c.panes)+n)-c.bar > float64(count)
}

// refresh computes the bar of the window that ends with a pane.
func (c *cells) refresh(end int64) {
	c.stale = refreshBar
	from, to := c.spans(end, c.panes)
	mean := float64(c.sum.Sum(to, to-from+1)) / float64(len(c.all))
	c.bar = mean + 2*math.Sqrt(mean)
}
