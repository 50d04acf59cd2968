//go:build real

package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// counted is a row of a [pastFixture]: what was counted of a key in each step of time.
type counted struct {
	rule, route, key, unit string
	low, high, refused     []int64 // a refused below zero is not known, and so is a high
}

type pastMark struct {
	At    int64  `json:"at"`
	Kind  string `json:"kind"`
	Rule  string `json:"rule,omitempty"`
	Key   string `json:"key,omitempty"`
	Words string `json:"words"`
}

// pastFixture answers /api/v1/history as an aggregator does that kept top keys of each rule in
// each step of time.
type pastFixture struct {
	from, step int64
	rows       []*counted // a rest of a rule has no key
	marks      []pastMark
	gaps       [][2]int64
	other      map[string][]int64 // the most that a key of a rule without a count can have in each step

	mu    sync.Mutex
	asked []string
}

func (p *pastFixture) steps() int64 { return int64(len(p.rows[0].low)) }

// row returns a row, which is added if there is none.
func (p *pastFixture) row(steps int, rule, route, key, unit string) *counted {
	r := &counted{rule: rule, route: route, key: key, unit: unit, low: make([]int64, steps), high: make([]int64, steps), refused: make([]int64, steps)}
	p.rows = append(p.rows, r)
	return r
}

// keepTop leaves n keys of each rule in each step, and puts the others into its rest, as an
// aggregator does when it writes.
func (p *pastFixture) keepTop(n int) {
	rest, of := map[string]*counted{}, map[string][]*counted{}
	for _, c := range p.rows {
		of[c.rule] = append(of[c.rule], c)
	}
	steps := int(p.steps())
	p.other = map[string][]int64{}
	for rule, all := range of {
		p.other[rule] = make([]int64, steps)
		rest[rule] = p.row(steps, rule, all[0].route, "", all[0].unit)
		for i := range steps {
			var counts []int64
			for _, c := range all {
				if c.low[i] > 0 {
					counts = append(counts, c.low[i])
				}
			}
			if len(counts) <= n {
				continue
			}
			slices.Sort(counts)
			least := counts[len(counts)-n]
			p.other[rule][i] = least
			above, _ := slices.BinarySearch(counts, least+1)
			room := n - (len(counts) - above) // for keys with exactly the least
			for _, c := range all {
				if c.low[i] == least && room > 0 {
					room--
					continue
				}
				if c.low[i] == 0 || c.low[i] > least {
					continue
				}
				rest[rule].low[i] += c.low[i]
				rest[rule].high[i] += c.high[i]
				rest[rule].refused[i] += c.refused[i]
				c.low[i], c.high[i], c.refused[i] = 0, 0, 0
			}
		}
	}
	p.rows = slices.DeleteFunc(p.rows, func(c *counted) bool { return slices.Max(c.low) == 0 })
}

type pastRow struct {
	Rule  string `json:"rule"`
	Route string `json:"route"`
	Key   string `json:"key,omitempty"`
	Unit  string `json:"unit"`
	Cells cells  `json:"cells"`

	total int64
	place int
}

// cells are [column, low, high, refused]. What is below zero is not known.
type cells [][4]int64

func (c cells) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, cell := range c {
		if i > 0 {
			out = append(out, ',')
		}
		for j, n := range cell {
			out = append(out, "[,,,"[j])
			if n < 0 {
				out = append(out, "null"...)
			} else {
				out = strconv.AppendInt(out, n, 10)
			}
		}
		out = append(out, ']')
	}
	return append(out, ']'), nil
}

// addCell adds the amounts of b to those of a.
func addCell(a, b [4]int64) [4]int64 {
	for j := 1; j < 4; j++ {
		if a[j] < 0 || b[j] < 0 {
			a[j] = -1
		} else {
			a[j] += b[j]
		}
	}
	return a
}

func (p *pastFixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number := func(name string) int64 { n, _ := strconv.ParseInt(r.URL.Query().Get(name), 10, 64); return n }
	p.mu.Lock()
	p.asked = append(p.asked, r.URL.RawQuery)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.answer(number("from"), number("to"), number("columns"), r.URL.Query().Get("text"))) // the client has gone
}

// questions returns the queries so far.
func (p *pastFixture) questions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *pastFixture) answer(from, to, columns int64, text string) map[string]any {
	step := p.step
	for _, s := range []int64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 2400} {
		if step = max(p.step, s); (to+s-1)/s-from/s <= columns && s >= p.step {
			break
		}
	}
	from, to = from-from%step, (to+step-1)/step*step
	type part struct{ rule, route, unit string }
	rest := map[part]*pastRow{}
	rows := make([]*pastRow, len(p.rows))
	add := func(row *pastRow, column, low, high, refused int64) {
		if n := len(row.Cells); n == 0 || row.Cells[n-1][0] != column {
			row.Cells = append(row.Cells, [4]int64{column})
		}
		cell := &row.Cells[len(row.Cells)-1]
		*cell = addCell(*cell, [4]int64{column, low, high, refused})
		row.total += low
	}
	for at := max(from, p.from); at < min(to, p.from+p.steps()*p.step); at += p.step {
		i, column := (at-p.from)/p.step, (at-from)/step
		for r, c := range p.rows {
			if c.low[i] == 0 {
				continue
			}
			if rows[r] == nil {
				rows[r] = &pastRow{Rule: c.rule, Route: c.route, Key: c.key, Unit: c.unit}
			}
			add(rows[r], column, c.low[i], c.high[i], c.refused[i])
		}
	}
	for r, c := range p.rows {
		if rows[r] == nil || c.key == "" || p.other == nil {
			continue
		}
		for j, cell := range rows[r].Cells {
			first := from + cell[0]*step
			for i := max(0, (first-p.from)/p.step); i < min(p.steps(), (first+step-p.from)/p.step); i++ {
				if c.low[i] == 0 {
					rows[r].Cells[j][2] += p.other[c.rule][i]
				}
			}
		}
	}
	for r, c := range p.rows {
		if c.key == "" && rows[r] != nil {
			rest[part{c.rule, c.route, c.unit}] = rows[r]
			rows[r] = nil
		}
	}
	rows = slices.DeleteFunc(rows, func(r *pastRow) bool { return r == nil || !strings.Contains(r.Rule+" "+r.Key, text) })
	slices.SortStableFunc(rows, func(a, b *pastRow) int { return cmp.Compare(b.total, a.total) })
	places := map[string]int{} // the first of each rule, the second of each, and so on
	for _, r := range rows {
		r.place = places[r.Rule]
		places[r.Rule]++
	}
	slices.SortStableFunc(rows, func(a, b *pastRow) int { return cmp.Compare(a.place, b.place) })
	left := max(0, len(rows)-1000)
	for _, r := range rows[len(rows)-left:] {
		group := part{r.Rule, r.Route, r.Unit}
		if rest[group] == nil {
			rest[group] = &pastRow{Rule: r.Rule, Route: r.Route, Unit: r.Unit}
		}
		rest[group] = mergeCells(rest[group], r)
	}
	marks := slices.DeleteFunc(slices.Clone(p.marks), func(m pastMark) bool { return m.At < from || m.At >= to })
	gaps := slices.DeleteFunc(slices.Clone(p.gaps), func(g [2]int64) bool { return g[1] <= from || g[0] >= to })
	others := make([]*pastRow, 0, len(rest))
	for _, r := range rest {
		others = append(others, r)
	}
	slices.SortFunc(others, func(a, b *pastRow) int { return cmp.Compare(a.Rule, b.Rule) })
	return map[string]any{"from": from, "to": to, "step": step, "rows": rows[:len(rows)-left], "rest": others, "marks": append([]pastMark{}, marks...), "gaps": append([][2]int64{}, gaps...), "left_out": left}
}

// mergeCells adds the cells of b to those of a.
func mergeCells(a, b *pastRow) *pastRow {
	at := map[int64]int{}
	for i, c := range a.Cells {
		at[c[0]] = i
	}
	for _, c := range b.Cells {
		if i, known := at[c[0]]; known {
			a.Cells[i] = addCell(a.Cells[i], c)
		} else {
			a.Cells = append(a.Cells, c)
		}
	}
	return a
}

// smallPast returns a minute of 3 keys and the rest, in steps of a second.
func smallPast(from int64) *pastFixture {
	p := &pastFixture{from: from, step: 1}
	for i, key := range []string{"q=phone", "q=lamp", "q=chair"} {
		r := p.row(60, "search-terms", "GET /search", key, "requests")
		for s := range r.low {
			n := int64(10 * (3 - i))
			if i == 0 && s >= 30 {
				n = 200
				r.refused[s] = 150
			}
			r.low[s], r.high[s] = n, n
		}
	}
	slow := p.row(60, "downloads", "GET /files/{id}", "id=7", "ms")
	for s := range slow.low {
		slow.low[s], slow.high[s], slow.refused[s] = 900, 950, -1
	}
	p.marks = []pastMark{{At: from + 20, Kind: "deploy", Words: "3 instances of v1.8.2"}, {At: from + 31, Kind: "hot", Rule: "search-terms", Key: "GET /search?q=phone", Words: "212-230 in 1s, hot at 200/s"}}
	p.gaps = [][2]int64{{from + 10, from + 15}}
	for _, r := range p.rows {
		for s := 10; s < 15; s++ {
			r.low[s], r.high[s], r.refused[s] = 0, 0, 0
		}
	}
	return p
}

// wideAndLong returns n keys over a time of steps, of which each key is counted in a part.
func wideAndLong(n, steps int, from, step int64) *pastFixture {
	p := &pastFixture{from: from, step: step}
	for i := range n {
		r := p.row(steps, "search-terms", "GET /search", fmt.Sprintf("q=value-%04d", i), "requests")
		for s := range r.low {
			n := int64(1 + (i*7919+s*(1+i%13))%(10+i))
			r.low[s], r.high[s] = n, n+n/20
		}
	}
	return p
}
