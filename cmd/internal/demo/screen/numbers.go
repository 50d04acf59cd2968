package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
)

// meter measures the recent rate of a counter that only rises.
type meter struct{ readings []reading }

type reading struct {
	t time.Time
	n int64
}

// meterSpan is the time over which the rate is taken.
const meterSpan = 2 * time.Second

func (m *meter) add(t time.Time, n int64) {
	m.readings = append(m.readings, reading{t, n})
	for len(m.readings) > 2 && t.Sub(m.readings[1].t) >= meterSpan {
		m.readings = m.readings[1:]
	}
}

// perSecond returns the rate, or 0 until there are two readings.
func (m *meter) perSecond() float64 {
	if len(m.readings) < 2 {
		return 0
	}
	first, last := m.readings[0], m.readings[len(m.readings)-1]
	return float64(last.n-first.n) / last.t.Sub(first.t).Seconds()
}

// dropped describes the lost counts by reason.
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
