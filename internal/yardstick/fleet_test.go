package yardstick

import (
	"math"
	"testing"
	"time"
)

func TestPour(t *testing.T) {
	const perNano = 10.0 / 1e9 // a permit each 100 ms
	ms := int64(time.Millisecond)
	for name, c := range map[string]struct {
		times  []int64
		debt   bool
		taken  int
		lowest float64
	}{
		"none":                 {lowest: 3},
		"the burst":            {times: []int64{0, 0, 0}, taken: 3, lowest: 0},
		"more, without debt":   {times: []int64{0, 0, 0, 0}, taken: 3, lowest: 0},
		"more, with debt":      {times: []int64{0, 0, 0, 0}, debt: true, taken: 4, lowest: -1},
		"earned in between":    {times: []int64{0, 0, 0, 100 * ms}, taken: 4, lowest: 0},
		"too soon":             {times: []int64{0, 0, 0, 50 * ms}, debt: true, taken: 4, lowest: -0.5},
		"no more than a burst": {times: []int64{0, 1e13, 1e13, 1e13, 1e13}, debt: true, taken: 5, lowest: -1},
	} {
		if taken, lowest := pour(c.times, perNano, 3, c.debt); taken != c.taken || math.Abs(lowest-c.lowest) > 1e-9 {
			t.Errorf("%s: %d taken, lowest level %v; want %d, %v", name, taken, lowest, c.taken, c.lowest)
		}
	}
}
