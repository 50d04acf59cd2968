package hotset_test

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A custom request path keeps a payload for each hot key, here a limiter. A hotkeys.Watcher would
// write to the set.
func ExampleSet() {
	type limiter struct{ rate rules.Rate }
	set := hotset.New(func(h published.Hot, old *limiter, had bool) *limiter {
		if had && old.rate == h.Limit {
			return old // with its state
		}
		return &limiter{rate: h.Limit}
	}, hotset.Config[*limiter]{})

	key := rules.Key{Rule: "search-terms", Text: "GET /search?q=phone"}
	set.Update("1", published.Change{Hot: []published.Hot{{Key: key, Limit: rules.Rate{N: 50, Per: time.Second}}}})

	member := []byte(key.String())
	if entry := set.Lookup(rules.Hash(member), member); entry != nil {
		fmt.Println(entry.Hot.Text, "has", entry.Payload.rate)
	}
	set.Update("2", published.Change{Cool: []published.Hot{{Key: key}}})
	fmt.Println(set.Lookup(rules.Hash(member), member) == nil)
	// Output:
	// GET /search?q=phone has 50/s
	// true
}
