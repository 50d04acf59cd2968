package history

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func drawChunk(t *rapid.T) *chunk {
	amount := rapid.Int64Range(0, 1<<40)
	maybe := rapid.OneOf(rapid.Just(published.Unknown), amount)
	columns := rapid.IntRange(1, maxColumns).Draw(t, "columns")
	c := newChunk(rapid.Int64Range(-1<<33, 1<<40).Draw(t, "start"), rapid.Int64Range(1, 600).Draw(t, "step"), columns)
	for i := range c.known {
		c.known[i] = rapid.Bool().Draw(t, "known")
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "rules") {
		r := c.rule(fmt.Sprint("r", i), rules.Unit(rapid.IntRange(0, 3).Draw(t, "unit")), rapid.Int64Range(1, 60).Draw(t, "span"))
		for j := range r.rest {
			if low := amount.Draw(t, "rest"); rapid.Bool().Draw(t, "seen") {
				r.rest[j] = restCell{true, low, published.Plus(low, maybe.Draw(t, "high")), maybe.Draw(t, "other")}
			}
		}
		for _, text := range rapid.SliceOfNDistinct(rapid.StringN(1, 20, -1), 0, 8, rapid.ID).Draw(t, "keys") {
			k := r.key(text)
			for column := range columns {
				if rapid.Bool().Draw(t, "cell") {
					low := amount.Draw(t, "low")
					k.cells = append(k.cells, Cell{column, low, published.Plus(low, maybe.Draw(t, "high")), maybe.Draw(t, "refused")})
				}
			}
			if k.cells == nil {
				k.cells = []Cell{}
			}
		}
		if r.keys == nil {
			r.keys = []keySeries{}
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "marks") {
		c.marks = append(c.marks, Mark{c.start + rapid.Int64Range(0, 100).Draw(t, "at"), rapid.SampledFrom(kinds).Draw(t, "kind"), "r", rapid.String().Draw(t, "text"), "words"})
	}
	return c
}

func TestChunkIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChunk(t)
		got, err := parseChunk(c.encode())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, c) {
			t.Fatalf("wrote %+v, read %+v", c, got)
		}
	})
}

// Whatever the bytes, reading them neither panics nor returns amounts that cannot be, and what it
// returns can be written.
func FuzzChunk(f *testing.F) {
	c := newChunk(1_764_340_000, 10, 60)
	r := c.rule("search", rules.Requests, 1)
	r.rest[3] = restCell{true, 5, published.Unknown, 9}
	r.key("GET /search?q=1").cells = []Cell{{3, 10, 12, published.Unknown}}
	c.mark(Mark{1_764_340_001, MarkHot, "search", "GET /search?q=1", "hot"})
	f.Add(c.appendRaw(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := parser{rest: raw}
		c := p.chunk()
		if _, err := parseChunk(raw); err == nil && len(raw) < 8 {
			t.Fatalf("read %q", raw)
		}
		if p.bad || len(p.rest) > 0 {
			return
		}
		for _, r := range c.rules {
			for _, k := range r.keys {
				for i, x := range k.cells {
					if x.Column >= len(c.known) || i > 0 && x.Column <= k.cells[i-1].Column || x.Low < 0 || x.High != published.Unknown && x.High < x.Low {
						t.Fatalf("cells %+v", k.cells)
					}
				}
			}
		}
		c.forget(func(_, text string) bool { return text == "x" })
		again, err := parseChunk(c.encode())
		if err != nil || !reflect.DeepEqual(normal(again), normal(c)) {
			t.Fatalf("%+v is written as %+v: %v", c, again, err)
		}
	})
}

// normal returns a chunk whose empty lists are nil.
func normal(c *chunk) *chunk {
	if len(c.marks) == 0 {
		c.marks = nil
	}
	for i := range c.rules {
		if len(c.rules[i].keys) == 0 {
			c.rules[i].keys = nil
		}
		for j := range c.rules[i].keys {
			if k := &c.rules[i].keys[j]; len(k.cells) == 0 {
				k.cells = nil
			}
		}
	}
	return c
}
