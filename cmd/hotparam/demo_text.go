package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// meter is a rate over the last moments of a counter that only rises.
type meter struct{ readings []reading }

type reading struct {
	at time.Time
	n  int64
}

// meterSpan is how long a time the rate is taken over.
const meterSpan = 2 * time.Second

func (m *meter) add(at time.Time, n int64) {
	m.readings = append(m.readings, reading{at, n})
	for len(m.readings) > 2 && at.Sub(m.readings[1].at) >= meterSpan {
		m.readings = m.readings[1:]
	}
}

// perSecond is 0 until there are two readings.
func (m *meter) perSecond() float64 {
	if len(m.readings) < 2 {
		return 0
	}
	first, last := m.readings[0], m.readings[len(m.readings)-1]
	return float64(last.n-first.n) / last.at.Sub(first.at).Seconds()
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// shorten cuts a key's text to width by leaving out the beginning of its path,
// whole segments where that is possible: its end says most.
func shorten(text string, width int) string {
	r := []rune(text)
	switch {
	case len(r) <= width:
		return text
	case width < 1:
		return ""
	}
	method := strings.IndexRune(text, ' ') + 1
	if method > width/3 {
		method = 0
	}
	tail := r[len(r)-(width-method-1):]
	if i := strings.IndexAny(string(tail), "/?"); i >= 0 && i < len(tail)/2 {
		tail = tail[i:]
	}
	return string(r[:method]) + "…" + string(tail)
}

// dropped describes what was not counted, and why.
func dropped(reasons map[string]int64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if n := reasons[reason]; n != 0 {
			parts = append(parts, fmt.Sprintf("%s %s", reason, thousands(n)))
		}
	}
	if len(parts) == 0 {
		return "nothing was dropped"
	}
	return "dropped: " + strings.Join(parts, ", ")
}
