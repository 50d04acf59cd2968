package window

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// An entry's sum equals the sum of its panes unless it is stale, whatever comes late and however
// long the key was silent.
func TestSumIsThatOfThePanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(rules.NewWindow(10*time.Second), 14, 1<<20)
		log := ""
		now := int64(10_000_000)
		for range 60 {
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0:
				w.NameFrom(rapid.Int64Range(1, 100).Draw(t, "from"))
			case 1:
				now += rapid.Int64Range(0, 30).Draw(t, "ahead")
				w.Advance(now)
			default:
				now += rapid.Int64Range(0, 3).Draw(t, "step")
				w.Advance(now)
				pane := now - rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 5, 20, 55, 59, 60, 70}).Draw(t, "back")
				n := rapid.Int64Range(1, 40).Draw(t, "n")
				i, low, end := w.Add(7, []byte("x"), pane, n)
				log += fmt.Sprintf("add %d n %d -> low %d end %d; ", pane-10_000_000, n, low, end-10_000_000)
				if i >= 0 {
					e := w.arena.unit(uint32(i))
					last := w.recent(e[entryLast])
					sum := int64(0)
					all := ""
					w.panes(e, func(p, n int64) {
						all += fmt.Sprint(p-10_000_000, ":", n, " ")
						if p > last-int64(w.Panes) {
							sum += n
						}
					})
					if !e.isStale() && sum != e.sum() {
						t.Fatalf("sum %d want %d last %d: %s\n%s", e.sum(), sum, last-10_000_000, all, log)
					}
				}
			}
		}
	})
}
