package history

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// chunk is what one owner counted in a time, in columns of step seconds. A pane is a chunk of one
// column of a second.
type chunk struct {
	start, step int64  // Unix seconds, and seconds of a column
	known       []bool // whether the owner wrote the column
	rules       []ruleSeries
	marks       []Mark
}

// ruleSeries are the amounts of a rule.
type ruleSeries struct {
	rule string
	unit rules.Unit
	span int64 // seconds of the detector's pane: what ends in a second was counted in that time
	rest []restCell
	keys []keySeries // sorted by text
}

// restCell has the bounds of the amounts of keys without a cell. The most that one such key can have
// is other. If the rule was not counted in the column, seen is false.
type restCell struct {
	seen             bool
	low, high, other int64 // high and other may be [published.Unknown]
}

// keySeries are the amounts of a key, by ascending column.
type keySeries struct {
	text  string
	cells []Cell
}

const (
	// maxChunkKeys and minChunkKeys bound the keys of a rule in a chunk. The rules of a chunk share
	// sharedKeys.
	maxChunkKeys, minChunkKeys, sharedKeys = 1000, 100, 5000
	// maxChunkMarks bounds the marks of a chunk, and maxMinorMarks those about single keys that become
	// hot or cool.
	maxChunkMarks, maxMinorMarks = 200, 100
)

func newChunk(start, step int64, columns int) *chunk {
	return &chunk{start: start, step: step, known: make([]bool, columns)}
}

// rule returns the series of a rule, and adds it if needed.
func (c *chunk) rule(id string, unit rules.Unit, span int64) *ruleSeries {
	i, found := slices.BinarySearchFunc(c.rules, id, func(r ruleSeries, id string) int { return cmp.Compare(r.rule, id) })
	if !found {
		c.rules = slices.Insert(c.rules, i, ruleSeries{rule: id, rest: make([]restCell, len(c.known))})
	}
	r := &c.rules[i]
	r.unit, r.span = unit, span
	return r
}

// key returns the series of a key, and adds it if needed.
func (r *ruleSeries) key(text string) *keySeries {
	i, found := slices.BinarySearchFunc(r.keys, text, func(k keySeries, text string) int { return cmp.Compare(k.text, text) })
	if !found {
		r.keys = slices.Insert(r.keys, i, keySeries{text: text})
	}
	return &r.keys[i]
}

// addTops adds to a pane what a detector counted in its second. Each detector of an owner has other
// keys. hides reports whether a key must not be kept; its amount is then one of the rest.
func (c *chunk) addTops(t *aggregator.Tops, hides func(text string) bool) (hidden int) {
	r := c.rule(t.Rule, t.Unit, t.Span)
	c.known[0] = true
	rest := &r.rest[0]
	if !rest.seen {
		*rest = restCell{seen: true}
	}
	rest.low += t.RestLow
	rest.high = published.Plus(rest.high, t.RestHigh)
	rest.other = atLeast(rest.other, t.Other)
	for i := range t.Keys {
		k := &t.Keys[i]
		if k.Low == 0 && k.High == 0 {
			continue
		}
		if hides(k.Text) {
			hidden++
			rest.low, rest.high, rest.other = rest.low+k.Low, published.Plus(rest.high, k.High), atLeast(rest.other, k.High)
			continue
		}
		s := r.key(k.Text)
		s.cells = []Cell{{0, k.Low, k.High, published.Unknown}}
	}
	return hidden
}

// fold adds up the columns of another chunk from first to last, into one column of c.
func (c *chunk) fold(from *chunk, first, last, column int) {
	for i := first; i <= last; i++ {
		c.known[column] = c.known[column] || from.known[i]
	}
	for i := range from.rules {
		f := &from.rules[i]
		sum := restCell{}
		for _, x := range f.rest[first : last+1] {
			if x.seen {
				sum = restCell{true, sum.low + x.low, published.Plus(sum.high, x.high), published.Plus(sum.other, x.other)}
			}
		}
		if !sum.seen {
			continue
		}
		r := c.rule(f.rule, f.unit, f.span)
		r.rest[column] = sum
		r.foldKeys(f, first, last, column, sum.other)
	}
	for _, m := range from.marks {
		if m.At >= from.start+int64(first)*from.step && m.At < from.start+int64(last+1)*from.step {
			c.mark(m)
		}
	}
}

// foldKeys adds up the cells of keys. other is the most that a key can have in all of the columns
// without a cell.
func (r *ruleSeries) foldKeys(from *ruleSeries, first, last, column int, other int64) {
	for i := range from.keys {
		k := &from.keys[i]
		begin, _ := slices.BinarySearchFunc(k.cells, first, compareColumn)
		sum, missing := Cell{Column: column, Refused: published.Unknown}, other
		found := false
		for _, x := range k.cells[begin:] {
			if x.Column > last {
				break
			}
			found = true
			sum.Low, sum.High = sum.Low+x.Low, published.Plus(sum.High, x.High)
			sum.Refused = plusKnown(sum.Refused, x.Refused)
			missing = minus(missing, from.rest[x.Column].other)
		}
		if !found {
			continue
		}
		if other == published.Unknown && seenIn(from, first, last, k.cells[begin:]) {
			missing = 0 // the key has a cell in each column
		}
		sum.High = published.Plus(sum.High, missing)
		s := r.key(k.text)
		at, exists := slices.BinarySearchFunc(s.cells, column, compareColumn)
		if !exists {
			s.cells = slices.Insert(s.cells, at, sum)
		}
	}
}

// seenIn reports whether there is a cell for each column that the rule was counted in.
func seenIn(r *ruleSeries, first, last int, cells []Cell) bool {
	next := 0
	for column := first; column <= last; column++ {
		if !r.rest[column].seen {
			continue
		}
		for next < len(cells) && cells[next].Column < column {
			next++
		}
		if next == len(cells) || cells[next].Column != column {
			return false
		}
	}
	return true
}

func compareColumn(c Cell, column int) int { return cmp.Compare(c.Column, column) }

// mark adds a mark, if there is room for one of its kind and it is not known.
func (c *chunk) mark(m Mark) {
	if slices.Contains(c.marks, m) {
		return
	}
	if minor := m.Kind == MarkHot || m.Kind == MarkCool; len(c.marks) >= maxChunkMarks || minor && len(c.marks) >= maxMinorMarks {
		return
	}
	c.marks = append(c.marks, m)
}

// prune moves the keys with the smallest amounts to the rest, so that the chunk has room for all
// rules.
func (c *chunk) prune() {
	most := min(maxChunkKeys, max(minChunkKeys, sharedKeys/max(1, len(c.rules))))
	for i := range c.rules {
		r := &c.rules[i]
		if len(r.keys) <= most {
			continue
		}
		totals := make([]int64, len(r.keys))
		for j := range r.keys {
			totals[j] = r.keys[j].total()
		}
		least := slices.Sorted(slices.Values(totals))[len(totals)-most]
		room := most
		for _, n := range totals {
			if n > least {
				room--
			}
		}
		kept := r.keys[:0]
		for j, k := range r.keys {
			switch {
			case totals[j] > least:
			case totals[j] == least && room > 0:
				room--
			default:
				r.giveUp(&k)
				continue
			}
			kept = append(kept, k)
		}
		clear(r.keys[len(kept):])
		r.keys = kept
	}
}

// giveUp adds the cells of a key to the rest.
func (r *ruleSeries) giveUp(k *keySeries) {
	for _, x := range k.cells {
		rest := &r.rest[x.Column]
		rest.low, rest.high, rest.other = rest.low+x.Low, published.Plus(rest.high, x.High), atLeast(rest.other, x.High)
	}
}

func (k *keySeries) total() (sum int64) {
	for i := range k.cells {
		sum += k.cells[i].Low
	}
	return sum
}

// forget removes the keys and marks that a function names. It leaves their amounts out of the rest,
// where nothing shows whose they were.
func (c *chunk) forget(forgets func(rule, text string) bool) (removed int) {
	for i := range c.rules {
		r := &c.rules[i]
		before := len(r.keys)
		r.keys = slices.DeleteFunc(r.keys, func(k keySeries) bool { return forgets(r.rule, k.text) })
		removed += before - len(r.keys)
	}
	before := len(c.marks)
	c.marks = slices.DeleteFunc(c.marks, func(m Mark) bool { return m.Text != "" && forgets(m.Rule, m.Text) })
	return removed + before - len(c.marks)
}

// total returns the sum of all amounts.
func (c *chunk) total() (sum int64) {
	for i := range c.rules {
		for _, x := range c.rules[i].rest {
			sum += x.low
		}
		for j := range c.rules[i].keys {
			sum += c.rules[i].keys[j].total()
		}
	}
	return sum
}

// cellOf returns the cell of a key of a pane, or nil. Only rules that count requests have refused ones.
func (c *chunk) cellOf(key rules.Key) *Cell {
	i, found := slices.BinarySearchFunc(c.rules, key.Rule, func(r ruleSeries, id string) int { return cmp.Compare(r.rule, id) })
	if !found || c.rules[i].unit != rules.Requests {
		return nil
	}
	r := &c.rules[i]
	j, found := slices.BinarySearchFunc(r.keys, key.Text, func(k keySeries, text string) int { return cmp.Compare(k.text, text) })
	if !found || len(r.keys[j].cells) == 0 {
		return nil
	}
	return &r.keys[j].cells[0]
}
