package history

import (
	"encoding/json"
	"strconv"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// View is the history of a time, in columns of equal length. It is the answer of /api/v1/history.
type View struct {
	// From and To bound the time in Unix seconds, and are multiples of Step. Column i begins at
	// From + i×Step.
	From, To, Step int64
	// Rows are the keys with the most counts, at most [MaxRows], the most first.
	Rows []Row
	// Rest has what the rows leave of each rule.
	Rest []Row
	// Marks are at most [MaxMarks], in the order of their times.
	Marks []Mark
	// Gaps are the times in which no aggregator wrote.
	Gaps [][2]int64
	// LeftOut is the number of keys that were found and have no row.
	LeftOut int
}

// Bounds of a [View].
const (
	MaxColumns = 1000
	MaxRows    = 1000
	MaxMarks   = 1000
)

// Row is a key, or the rest of a rule, whose Key is empty.
type Row struct {
	Rule string
	// Route is the part of the key's text before its parameters: "GET /search". It is empty for rules
	// without a route in their keys, and for a rest of several routes.
	Route string
	// Key is the part of the text after it: "q=phone".
	Key   string
	Unit  rules.Unit
	Cells []Cell
}

// Sum returns the amounts of all columns together.
func (r *Row) Sum() Cell {
	sum := Cell{Refused: published.Unknown}
	for _, c := range r.Cells {
		sum.Low, sum.High, sum.Refused = sum.Low+c.Low, published.Plus(sum.High, c.High), plusKnown(sum.Refused, c.Refused)
	}
	return sum
}

// Cell has the amounts of a column, not rates.
type Cell struct {
	Column int
	// Low and High bound the amount. High may be [published.Unknown].
	Low, High int64
	// Refused is the part that limits refused, or [published.Unknown].
	Refused int64
}

// Kind is the kind of a [Mark].
type Kind string

// Kinds of marks.
const (
	MarkRules   Kind = "rules"   // other rules are in force
	MarkDeploy  Kind = "deploy"  // instances of another version of the program
	MarkControl Kind = "control" // an operator pinned, blocked, allowed or released a key
	MarkFault   Kind = "fault"   // the aggregator was not ready, or is again
	MarkHot     Kind = "hot"     // a key became hot
	MarkCool    Kind = "cool"    // a key cooled
)

// Mark is an event.
type Mark struct {
	At   int64 // Unix seconds
	Kind Kind
	// Rule and Text are the key that it is about, or empty. Text is the whole text of the key.
	Rule, Text string
	Words      string
}

// AppendJSON appends the JSON form:
//
//	{"from":1764340000,"to":1764343600,"step":10,
//	 "rows":[{"rule":"search","route":"GET /search","key":"q=phone","unit":"requests","cells":[[column,low,high,refused],…]}],
//	 "rest":[{"rule":"search","route":"GET /search","unit":"requests","cells":[[column,low,high,refused],…]}],
//	 "marks":[{"at":1764340100,"kind":"rules","words":"rules version 3f2a"}],
//	 "gaps":[[1764340200,1764340260]],
//	 "left_out":12}
//
// A high or refused amount that is not known is null. encoding/json would take seconds for a million
// cells.
func (v *View) AppendJSON(dst []byte) []byte {
	dst = appendField(append(dst, '{'), "from", v.From)
	dst = appendField(append(dst, ','), "to", v.To)
	dst = appendField(append(dst, ','), "step", v.Step)
	dst = appendList(append(dst, `,"rows":`...), v.Rows, appendRow)
	dst = appendList(append(dst, `,"rest":`...), v.Rest, appendRow)
	dst = appendList(append(dst, `,"marks":`...), v.Marks, func(dst []byte, m *Mark) []byte {
		dst = appendField(append(dst, '{'), "at", m.At)
		dst = appendText(dst, ",\"kind\":", string(m.Kind))
		if m.Rule != "" {
			dst = appendText(dst, ",\"rule\":", m.Rule)
		}
		if m.Text != "" {
			dst = appendText(dst, ",\"key\":", m.Text)
		}
		return append(appendText(dst, ",\"words\":", m.Words), '}')
	})
	dst = appendList(append(dst, `,"gaps":`...), v.Gaps, func(dst []byte, g *[2]int64) []byte {
		dst = strconv.AppendInt(append(dst, '['), g[0], 10)
		return append(strconv.AppendInt(append(dst, ','), g[1], 10), ']')
	})
	return append(appendField(append(dst, ','), "left_out", int64(v.LeftOut)), '}')
}

// MarshalJSON implements [json.Marshaler].
func (v *View) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

func appendRow(dst []byte, r *Row) []byte {
	dst = appendText(dst, "{\"rule\":", r.Rule)
	dst = appendText(dst, ",\"route\":", r.Route)
	if r.Key != "" {
		dst = appendText(dst, ",\"key\":", r.Key)
	}
	dst = appendText(dst, ",\"unit\":", r.Unit.String())
	return append(appendList(append(dst, `,"cells":`...), r.Cells, func(dst []byte, c *Cell) []byte {
		dst = strconv.AppendInt(append(dst, '['), int64(c.Column), 10)
		for _, n := range [...]int64{c.Low, c.High, c.Refused} {
			dst = append(dst, ',')
			if n == published.Unknown {
				dst = append(dst, "null"...)
			} else {
				dst = strconv.AppendInt(dst, n, 10)
			}
		}
		return append(dst, ']')
	}), '}')
}

func appendField(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(strconv.AppendQuote(dst, name), ':'), n, 10)
}

func appendText(dst []byte, before, text string) []byte {
	quoted, _ := json.Marshal(text) // a text has no error
	return append(append(dst, before...), quoted...)
}

func appendList[T any](dst []byte, all []T, one func([]byte, *T) []byte) []byte {
	dst = append(dst, '[')
	for i := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, &all[i])
	}
	return append(dst, ']')
}
