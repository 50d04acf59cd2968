package history

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hotparam/hotparam/internal/published"
)

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
		if cells[i] = x.Cell; x.High == published.Unknown {
			continue
		}
		if r.loose[x.Column] > x.known {
			cells[i].High = published.Unknown
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
