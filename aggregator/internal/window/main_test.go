package window

import (
	"hash/fnv"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// testHash replaces rules.Hash, which differs from run to run.
func testHash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64() * 0x9e3779b97f4a7c15
}

var testWindows = []time.Duration{
	time.Second, 1050 * time.Millisecond, 2 * time.Second, 7 * time.Second,
	10 * time.Second, 15 * time.Second, time.Minute, 3 * time.Minute, time.Hour,
}

type stamped struct {
	when time.Time
	n    int64
}

// sumPanes returns the sum of the counts in the window that ends with last.
func sumPanes(w rules.Window, counts []stamped, last int64) int64 {
	return sumBetween(w, counts, last-int64(w.Panes)+1, last)
}

// sumBetween returns the sum of the counts in the panes from first to last.
func sumBetween(w rules.Window, counts []stamped, first, last int64) (sum int64) {
	for _, c := range counts {
		if pane := w.Index(c.when); first <= pane && pane <= last {
			sum += c.n
		}
	}
	return sum
}
