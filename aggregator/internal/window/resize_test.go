package window

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// Through any sequence of sizes, a window's bounds hold and it stays within its budget. If there
// was room for all keys, each has its exact count and its tag. However many keys are pinned,
// none of a pinned key's counts are lost.
func TestResizeKeepsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rules.NewWindow(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "window"))
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
				i, _, _ := w.Add(rules.Hash([]byte(text)), []byte(text), now, n)
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
				if w.Tag(i) != tags[text] || string(w.Name(i)) != text || w.Find(rules.Hash([]byte(text)), []byte(text)) != i {
					t.Fatalf("the tag of %s is not at entry %d", text, i)
				}
			}
			if len(at) < len(tags) && ample {
				t.Fatalf("%d of %d tags are left", len(at), len(tags))
			}
			for text := range tags {
				if _, ok := at[text]; !ok {
					delete(tags, text) // there was no room for the text
				}
			}
			for text, panes := range truth {
				sum := int64(0)
				for pane := now - int64(shape.Panes) + 1; pane <= now; pane++ {
					sum += panes[pane]
				}
				low, high := w.Span(rules.Hash([]byte(text)), []byte(text), now, int64(shape.Panes))
				if low > sum || high < sum || ample && (low != sum || high != sum) {
					t.Fatalf("%s counts %d to %d, it was %d", text, low, high, sum)
				}
			}
		}
	})
}

// If the texts fit their part of the budget, pinned keys are evicted last. No pinned key loses its
// text to make room for counts while there are other keys to evict, however many pinned keys lie
// before them.
func TestPinnedKeysAreTheLastToGo(t *testing.T) {
	const pinned, all = 60, 4000
	shrunk := 0
	for budget := int64(1 << 20); budget >= 8<<10; budget = budget * 3 / 4 {
		w := New(rules.NewWindow(time.Second), 3, 4<<20)
		w.NameFrom(5)
		add := func(k int, n int64) int32 {
			text := fmt.Append(nil, "q=", k)
			i, _, _ := w.Add(rules.Hash(text), text, 1000, n)
			return i
		}
		for k := range all {
			if k >= pinned {
				add(k, 1) // without a text
				continue
			}
			w.Tie(add(k, 9), &Tag{Pinned: true, Owner: k})
		}
		fit, kept := w.names.bytes <= budget/8, 0
		w = w.Resize(budget, func(*Tag, int32) { kept++ })
		others := 0
		for k := pinned; k < all; k++ {
			if text := fmt.Append(nil, "q=", k); w.Find(rules.Hash(text), text) >= 0 {
				others++
			}
		}
		if !fit || others == 0 {
			continue
		}
		if others < all-pinned {
			shrunk++
		}
		if kept < pinned || w.NamesRanOut(1000) {
			t.Errorf("%d bytes: %d of %d pinned keys are left, and %d others", budget, kept, pinned, others)
		}
	}
	if shrunk < 3 {
		t.Errorf("%d budgets have room for the texts and not for the counts", shrunk)
	}
}
