package hotkeys

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// New rules redistribute the places: keys of a removed rule lose theirs, waiting keys take them,
// and a new rule gets its share.
func TestPlacesAreDividedAnew(t *testing.T) {
	d := newDesired(4, []string{"a", "b"})
	add := func(rule string, from, to int) {
		for i := from; i < to; i++ {
			d.set(published.Hot{Key: rules.Key{Rule: rule, Text: fmt.Sprint("q=", i)}, Ratio: float64(9 - i), Mode: rules.ModeLimit, Since: time.Unix(1, 0)})
		}
	}
	placed := func(want ...string) {
		t.Helper()
		var got []string
		for _, h := range d.top() {
			got = append(got, h.Rule+" "+h.Text)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("places %v, want %v", got, want)
		}
	}
	add("a", 0, 3)
	add("b", 0, 3)
	placed("a q=0", "a q=1", "b q=0", "b q=1")
	if !d.reload([]string{"a", "c"}) {
		t.Error("nothing changed")
	}
	placed("a q=0", "a q=1", "a q=2")
	add("c", 0, 3)
	placed("a q=0", "a q=1", "c q=0", "c q=1")
	if places := d.places(); len(places) != 2 || places["a"].Waiting != 1 {
		t.Errorf("places %v", places)
	}
}
