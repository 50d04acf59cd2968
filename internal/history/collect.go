package history

import (
	"cmp"
	"maps"
	"slices"

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
	other []int64 // by column, the sum of the most that a key without a cell can have
	loose []int64 // by column, the number of parts of it for which that is unknown
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
		if m.At >= c.from && m.At < c.to && (c.q.Rule == "" || m.Rule == "" || m.Rule == c.q.Rule) && (m.Text == "" || c.q.selects(m.Text)) {
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
		c.put(k, r, &rows.rest, i, Cell{Low: x.low, High: x.high, Refused: rules.Unknown}, 0)
		if x.other == rules.Unknown {
			rows.loose[column]++
		} else if !spread {
			rows.other[column] += x.other
		}
	}
	for i := range r.keys {
		s := &r.keys[i]
		if !c.q.selects(s.text) {
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
			if spread && other != rules.Unknown {
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
		if amount == rules.Unknown {
			return amount
		}
		return amount*(i+1)/n - amount*i/n
	}
	for i := range n {
		cell := rowCell{Cell: Cell{int(first + i), part(x.Low, i), part(x.High, i), part(x.Refused, i)}, covered: max(0, other)}
		if other == rules.Unknown {
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
		y.Low, y.High, y.Refused = y.Low+x.Low, plus(y.High, x.High), plusKnown(y.Refused, x.Refused)
		y.covered, y.known = y.covered+x.covered, y.known+x.known
		return
	}
	r.cells = slices.Insert(r.cells, i, x)
}

// ranked are the rows of all rules in the order of their places: the first of each rule, the second
// of each, and so on, since amounts of different units do not compare.
type ranked struct {
	rule, text string
	row        *keyRow
	place      int
}

func (c *collector) rank() (all []ranked) {
	for _, rule := range slices.Sorted(maps.Keys(c.rules)) {
		first := len(all)
		for text, row := range c.rules[rule].keys {
			all = append(all, ranked{rule: rule, text: text, row: row})
		}
		own := all[first:]
		slices.SortFunc(own, func(a, b ranked) int {
			return cmp.Or(cmp.Compare(b.row.total, a.row.total), cmp.Compare(a.text, b.text))
		})
		for i := range own {
			own[i].place = i
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(b.row.total, a.row.total))
	})
	return all
}

// shrink moves all rows beyond the first most to the rest of their rules.
func (c *collector) shrink(most int) {
	if c.rows <= most {
		return
	}
	for _, r := range c.rank()[most:] {
		rows := c.rules[r.rule]
		for _, x := range r.row.cells {
			x.covered, x.known = 0, 0
			rows.rest.add(x)
		}
		delete(rows.keys, r.text)
		c.rows--
		c.leftOut++
	}
}

// view returns the result. newest is the newest second that is written.
func (c *collector) view(newest int64) *View {
	c.shrink(MaxRows)
	v := &View{From: c.from, To: c.to, Step: c.step, LeftOut: c.leftOut, Gaps: c.gaps(newest)}
	routes := make(map[string]string)
	for _, r := range c.rank() {
		rows := c.rules[r.rule]
		route, params := splitKey(r.text)
		common := route
		if before, known := routes[r.rule]; known && before != route {
			common = ""
		}
		routes[r.rule] = common
		v.Rows = append(v.Rows, Row{Rule: r.rule, Route: route, Key: params, Unit: rows.unit, Cells: rows.cellsOf(r.row)})
	}
	for _, rule := range slices.Sorted(maps.Keys(c.rules)) {
		rows := c.rules[rule]
		rest := Row{Rule: rule, Route: routes[rule], Unit: rows.unit}
		for _, x := range rows.rest.cells {
			rest.Cells = append(rest.Cells, x.Cell)
		}
		v.Rest = append(v.Rest, rest)
	}
	v.Marks = c.sortedMarks()
	return v
}

// cellsOf returns the cells of a row, with their upper bounds.
func (r *ruleRows) cellsOf(row *keyRow) []Cell {
	cells := make([]Cell, len(row.cells))
	for i, x := range row.cells {
		if cells[i] = x.Cell; x.High == rules.Unknown {
			continue
		}
		if r.loose[x.Column] > x.known {
			cells[i].High = rules.Unknown
		} else {
			cells[i].High += max(0, r.other[x.Column]-x.covered)
		}
	}
	return cells
}

// sortedMarks returns the marks by time. Several aggregators report the same event within seconds.
func (c *collector) sortedMarks() (marks []Mark) {
	const same = 15
	all := slices.SortedFunc(maps.Keys(c.marks), func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Words, b.Words))
	})
	for _, m := range all {
		if !slices.ContainsFunc(marks, func(o Mark) bool {
			return m.At-o.At < same && m.Kind == o.Kind && m.Rule == o.Rule && m.Text == o.Text && m.Words == o.Words
		}) {
			marks = append(marks, m)
		}
	}
	if over := len(marks) - MaxMarks; over > 0 {
		marks = slices.DeleteFunc(marks, func(m Mark) bool { // those about single keys first
			if over > 0 && (m.Kind == MarkHot || m.Kind == MarkCool) {
				over--
				return true
			}
			return false
		})
	}
	return marks[:min(len(marks), MaxMarks)]
}

// gaps returns the times in which nobody wrote. A second that may still be written is none.
func (c *collector) gaps(newest int64) (gaps [][2]int64) {
	const least = 3
	end := min(c.to, newest+1)
	for at := c.from; at < end; {
		if c.written.has(at - c.from) {
			at++
			continue
		}
		begin := at
		for at < end && !c.written.has(at-c.from) {
			at++
		}
		if at-begin >= least && len(gaps) < MaxMarks {
			gaps = append(gaps, [2]int64{begin, at})
		}
	}
	return gaps
}

// bits are a set of seconds.
type bits []uint64

func newBits(n int64) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int64) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bits) set(from, to int64) {
	for i := from; i < to; i++ {
		b[i/64] |= 1 << (i % 64)
	}
}

func (b bits) all(from, to int64) bool {
	for i := from; i < to; i++ {
		if !b.has(i) {
			return false
		}
	}
	return true
}

func (b bits) or(other bits) {
	for i := range b {
		b[i] |= other[i]
	}
}
