package hotset_test

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/hotset"
)

// A request path of one's own keeps something for each hot key, here a limiter. A
// hotkeys.Watcher would write to the set.
func ExampleSet() {
	type limiter struct{ rate hotparam.Rate }
	set := hotset.New(func(h hotparam.Hot, old *limiter, had bool) *limiter {
		if had && old.rate == h.Limit {
			return old // with what it has counted
		}
		return &limiter{rate: h.Limit}
	}, hotset.Config[*limiter]{})

	key := hotparam.Key{Rule: "search-terms", Text: "GET /search?q=phone"}
	set.Update("1", hotparam.Change{Hot: []hotparam.Hot{{Key: key, Limit: hotparam.Rate{N: 50, Per: time.Second}}}})

	member := []byte(key.String())
	if entry := set.Lookup(hotparam.Hash(member), member); entry != nil {
		fmt.Println(entry.Hot.Text, "has", entry.Payload.rate)
	}
	set.Update("2", hotparam.Change{Cool: []hotparam.Hot{{Key: key}}})
	fmt.Println(set.Lookup(hotparam.Hash(member), member) == nil)
	// Output:
	// GET /search?q=phone has 50/s
	// true
}
