package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
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

// dropped describes what was not counted, and why.
func dropped(reasons map[string]int64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if n := reasons[reason]; n != 0 {
			parts = append(parts, fmt.Sprintf("%s %s", reason, hotwords.Thousands(n)))
		}
	}
	if len(parts) == 0 {
		return "nothing was dropped"
	}
	return "dropped: " + strings.Join(parts, ", ")
}
