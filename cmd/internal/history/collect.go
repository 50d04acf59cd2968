package history

import (
	"slices"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// collector adds up chunks in the columns of a view.
type collector struct {
	q              *Query
	from, to, step int64
	rules          map[string]*ruleRows
	marks          map[Mark]bool
	owned          bits // seconds that the present owner's chunks cover
	written        bits // seconds that some owner's chunks cover
	rows           int
	leftOut        int
}

// ruleRows are the rows of a rule.
type ruleRows struct {
	unit  rules.Unit
	keys  map[string]*keyRow
	rest  keyRow
	other []int64 // the most that a key without a cell can have, for each column
	loose []int64 // parts of each column for which that is unknown
}

// keyRow are the cells of a row. High lacks what the key can have where it has no cell; covered is
// that of the parts in which it has one, and known the number of those whose bound is unknown.
type keyRow struct {
	cells []rowCell
	total int64
}

type rowCell struct {
	Cell
	covered, known int64
}

// maxCollected bounds the rows in memory. Beyond it those with less become part of the rest.
const maxCollected = 30 * MaxRows

func newCollector(q *Query, from, to, step int64) *collector {
	return &collector{q: q, from: from, to: to, step: step, rules: make(map[string]*ruleRows), marks: make(map[Mark]bool), written: newBits(to - from)}
}

func (c *collector) columns() int64 { return (c.to - c.from) / c.step }

// begin begins with the chunks of another owner.
func (c *collector) begin() { c.owned = newBits(c.to - c.from) }

// finish ends an owner's chunks.
func (c *collector) finish() { c.written.or(c.owned) }

// covers reports whether the owner's coarser chunks cover a time.
func (c *collector) covers(from, to int64) bool {
	return c.owned.all(max(from, c.from)-c.from, min(to, c.to)-c.from)
}

// add adds the columns of a chunk that are in the time and not covered.
func (c *collector) add(k *chunk) {
	take := make([]bool, len(k.known))
	any := false
	for i, known := range k.known {
		at := k.start + int64(i)*k.step
		if known && at < c.to && at+k.step > c.from && !c.covers(at, at+k.step) {
			take[i], any = true, true
			c.owned.set(max(at, c.from)-c.from, min(at+k.step, c.to)-c.from)
		}
	}
	for _, m := range k.marks {
		if m.At >= c.from && m.At < c.to && (c.q.Rule == "" || m.Rule == "" || m.Rule == c.q.Rule) && (m.Text == "" || c.q.selects(m.Rule, m.Text)) {
			c.marks[m] = true
		}
	}
	if !any {
		return
	}
	for i := range k.rules {
		if r := &k.rules[i]; c.q.Rule == "" || r.rule == c.q.Rule {
			c.addRule(k, r, take)
		}
	}
	if c.rows > maxCollected {
		c.shrink(maxCollected / 2)
	}
}

func (c *collector) addRule(k *chunk, r *ruleSeries, take []bool) {
	rows := c.rules[r.rule]
	if rows == nil {
		n := c.columns()
		rows = &ruleRows{keys: make(map[string]*keyRow), other: make([]int64, n), loose: make([]int64, n)}
		c.rules[r.rule] = rows
	}
	rows.unit = r.unit
	spread := r.span > c.step // its panes are longer than a column
	for i, x := range r.rest {
		if !take[i] || !x.seen {
			continue
		}
		column := c.columnOf(k, i)
		c.put(k, r, &rows.rest, i, Cell{Low: x.low, High: x.high, Refused: published.Unknown}, 0)
		if x.other == published.Unknown {
			rows.loose[column]++
		} else if !spread {
			rows.other[column] += x.other
		}
	}
	for i := range r.keys {
		s := &r.keys[i]
		if !c.q.selects(r.rule, s.text) {
			for _, x := range s.cells { // what other keys have
				if take[x.Column] {
					c.put(k, r, &rows.rest, x.Column, x, 0)
				}
			}
			continue
		}
		var row *keyRow
		for _, x := range s.cells {
			if !take[x.Column] {
				continue
			}
			if row == nil {
				if row = rows.keys[s.text]; row == nil {
					row = new(keyRow)
					rows.keys[s.text] = row
					c.rows++
				}
			}
			other := r.rest[x.Column].other
			if spread && other != published.Unknown {
				other = 0
			}
			c.put(k, r, row, x.Column, x, other)
		}
	}
}

func (c *collector) columnOf(k *chunk, i int) int64 {
	return max(0, k.start+int64(i)*k.step-c.from) / c.step
}

// put adds a cell of a chunk's column to a row. If the rule's panes are longer than a column, each
// column of the pane gets an even part.
func (c *collector) put(k *chunk, r *ruleSeries, row *keyRow, column int, x Cell, other int64) {
	end := k.start + int64(column+1)*k.step
	last := c.columnOf(k, column)
	first := last
	if r.span > c.step {
		first = max(0, end-max(r.span, k.step)-c.from) / c.step
		if end-max(r.span, k.step) < c.from {
			first = 0
		}
	}
	row.total += x.Low
	n := last - first + 1
	part := func(amount, i int64) int64 {
		if amount == published.Unknown {
			return amount
		}
		return amount*(i+1)/n - amount*i/n
	}
	for i := range n {
		cell := rowCell{Cell: Cell{int(first + i), part(x.Low, i), part(x.High, i), part(x.Refused, i)}, covered: max(0, other)}
		if other == published.Unknown {
			cell.known = 1
		}
		row.add(cell)
	}
}

// add adds a cell. Cells mostly come in their order.
func (r *keyRow) add(x rowCell) {
	i := len(r.cells)
	for i > 0 && r.cells[i-1].Column > x.Column {
		i--
	}
	if i > 0 && r.cells[i-1].Column == x.Column {
		y := &r.cells[i-1]
		y.Low, y.High, y.Refused = y.Low+x.Low, published.Plus(y.High, x.High), plusKnown(y.Refused, x.Refused)
		y.covered, y.known = y.covered+x.covered, y.known+x.known
		return
	}
	r.cells = slices.Insert(r.cells, i, x)
}
