package bench

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// The peak of each key is that of a count that adds up all events again for each event.
func TestReferenceIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rules.NewWindow(rapid.SampledFrom([]time.Duration{time.Second, 7 * time.Second, time.Minute}).Draw(t, "window"))
		type event struct {
			key  string
			pane int64
			n    int64
		}
		var events []event
		pane := w.Index(time.Unix(1_700_000_000, 0))
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			pane += rapid.SampledFrom([]int64{0, 0, 0, 1, 2, int64(w.Panes) - 1, int64(w.Panes), 3 * int64(w.Panes)}).Draw(t, "step")
			events = append(events, event{
				key:  fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "key")),
				pane: pane,
				n:    rapid.Int64Range(1, 5).Draw(t, "n"),
			})
		}
		r := newReference(w)
		peaks := make(map[string]int64)
		for i, e := range events {
			r.Count(decode.Count{Text: []byte(e.key), N: e.n, When: w.Start(e.pane).Add(w.Pane / 2)})
			sum := int64(0)
			for _, before := range events[:i+1] {
				if before.key == e.key && before.pane > e.pane-int64(w.Panes) {
					sum += before.n
				}
			}
			peaks[e.key] = max(peaks[e.key], sum)
		}
		for key, want := range peaks {
			if got := r.keys[r.ids[key]].peak; got != want {
				t.Fatalf("key %s has a peak of %d, want %d", key, got, want)
			}
		}
		if len(r.keys) != len(peaks) {
			t.Fatalf("%d keys, want %d", len(r.keys), len(peaks))
		}
	})
}
