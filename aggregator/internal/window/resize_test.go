package window

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
)

// Whatever sizes a window has had, its bounds hold, it takes no more room than its budget, and
// where there was room for all keys each of them has its exact count and its tag. However many
// are tied, none of its counts are lost.
func TestResizeKeepsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := hotparam.NewWindow(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "window"))
		budgets := []int64{6 << 10, 20 << 10, 90 << 10, 1 << 20}
		w := New(shape, 3, 1<<20)
		w.NameFrom(5)
		truth := make(map[string]map[int64]int64)
		tags, at := make(map[string]*Tag), make(map[string]int32)
		ample, now := true, int64(1000)
		most := rapid.SampledFrom([]int{5, 300}).Draw(t, "tags")
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 60).Draw(t, "counts") {
				now += rapid.Int64Range(0, 1).Draw(t, "later")
				text := fmt.Sprint("q=", rapid.IntRange(0, 300).Draw(t, "key"))
				n := rapid.Int64Range(1, 9).Draw(t, "n")
				if truth[text] == nil {
					truth[text] = make(map[int64]int64)
				}
				truth[text][now] += n
				i, _, _ := w.Add(hotparam.Hash([]byte(text)), []byte(text), now, n)
				if i >= 0 && w.Name(i) != nil && tags[text] == nil && len(tags) < most {
					tags[text] = &Tag{Pinned: true, Owner: text}
					w.Tie(i, tags[text])
					at[text] = i
				}
			}
			budget := rapid.SampledFrom(budgets).Draw(t, "budget")
			ample = ample && budget == 1<<20
			clear(at)
			w = w.Resize(budget, func(tag *Tag, i int32) { at[tag.Owner.(string)] = i })
			if w.Used() > budget || w.Budget() != budget {
				t.Fatalf("%d bytes of %d are used", w.Used(), budget)
			}
			for text, i := range at {
				if w.Tag(i) != tags[text] || string(w.Name(i)) != text || w.Find(hotparam.Hash([]byte(text)), []byte(text)) != i {
					t.Fatalf("the tag of %s is not at entry %d", text, i)
				}
			}
			if len(at) < len(tags) && ample {
				t.Fatalf("%d of %d tags are left", len(at), len(tags))
			}
			for text := range tags {
				if _, ok := at[text]; !ok {
					delete(tags, text) // there was no room for what is tied
				}
			}
			for text, panes := range truth {
				sum := int64(0)
				for pane := now - int64(shape.Panes) + 1; pane <= now; pane++ {
					sum += panes[pane]
				}
				low, high := w.Span(hotparam.Hash([]byte(text)), []byte(text), now, int64(shape.Panes))
				if low > sum || high < sum || ample && (low != sum || high != sum) {
					t.Fatalf("%s counts %d to %d, it was %d", text, low, high, sum)
				}
			}
		}
	})
}
