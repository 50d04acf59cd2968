package top

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
)

// quiet returns the lines while no key is hot: the traffic of the rules, the keys that are nearest
// to being hot, and those that were hot lately.
func (m *model) quiet() (lines []string) {
	s := &m.snapshot.Summary
	head := func(words string) { lines = append(lines, "", " "+termtext.Faint.Render(words)) }
	row := func(cells ...any) {
		line := ""
		for i := 0; i < len(cells)-1; i += 2 {
			line += "  " + cellOf(cells[i].(string), cells[i+1].(int), true)
		}
		line += "  " + termtext.Printable(cells[len(cells)-1].(string))
		lines = append(lines, cellOf(line, max(1, m.width-1), false))
	}
	if len(s.Traffic) > 0 {
		head("       TRAFFIC   KEYS SEEN  RULE")
		for _, t := range s.Traffic[:min(len(s.Traffic), 5)] {
			row(hotwords.Speed(t.Rate, t.Unit), 14, hotwords.Thousands(t.Keys), 10, t.Rule+": "+t.Route)
		}
	}
	if len(s.Near) > 0 {
		head("NEAREST          RATE          HOT AT  KEY")
		for i := range s.Near {
			h := &s.Near[i]
			row(hotwords.Near(h), 6, hotwords.Speed(h.Rate, h.Cause.Unit), 13, hotwords.Cause(h.Cause), 14, h.Text)
		}
	}
	var lately []live.Event
	for _, e := range slices.Backward(m.events) {
		if e.Type == live.Cool {
			lately = append(lately, e)
		}
	}
	if len(lately) > 0 {
		head("HOT LATELY")
		for _, e := range lately {
			row(e.At.Local().Format(time.TimeOnly), 10, e.Key+": "+e.Why)
		}
	}
	return lines
}
