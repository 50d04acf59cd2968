package origins

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/hotparam/hotparam/internal/wire"
)

// add samples the origin of one request of a hot key.
func add(o *Sample, route, caller string) {
	if weight := o.Weight(rand.Uint64()); weight > 0 {
		o.Add(route, caller, weight)
	}
}

// noted drains the sample and returns its counts, by kind and name.
func noted(o *Sample) map[string]int64 {
	got := map[string]int64{}
	o.Drain(func(kind wire.OriginKind, name []byte, n int64) bool {
		got[string(kind)+" "+string(name)] += n
		return true
	})
	return got
}

func TestOriginsNoteTheFirstExactly(t *testing.T) {
	var o Sample
	for i := range sampleAll {
		add(&o, "GET /s", fmt.Sprint(i%4))
	}
	got := noted(&o)
	if len(got) != 5 || got["r GET /s"] != sampleAll || got["c 0"] != sampleAll/4 || got["c 3"] != sampleAll/4 {
		t.Errorf("got %v", got)
	}
	if again := noted(&o); len(again) != 0 {
		t.Errorf("after it was emptied there are %v", again)
	}
}

func TestOriginsEstimateTheRest(t *testing.T) {
	var o Sample
	const n = 64_000
	for i := range n {
		caller := "rare" + fmt.Sprint(i)
		if i%2 == 0 {
			caller = "half"
		}
		add(&o, "", caller)
	}
	got := noted(&o)
	if len(got) != tallied {
		t.Errorf("%d callers are kept, want %d", len(got), tallied)
	}
	if half := got["c half"]; half < n*4/10 || half > n*6/10 {
		t.Errorf("who sent half of %d requests is told to have sent %d", n, half)
	}
}

func TestOriginsCutNames(t *testing.T) {
	var o Sample
	add(&o, strings.Repeat("é", 100), "")
	for name, n := range noted(&o) {
		if n != 1 || name != "r "+strings.Repeat("é", maxName/2) {
			t.Errorf("%q: %d", name, n)
		}
	}
	add(&o, "", strings.Repeat("x", maxName-1)+"é")
	for name := range noted(&o) {
		if name != "c "+strings.Repeat("x", maxName-1) {
			t.Errorf("%q was cut within a character", name)
		}
	}
}

func TestOriginsAllocateNothing(t *testing.T) {
	var o Sample
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("caller-", i)
	}
	i := 0
	if n := testing.AllocsPerRun(5000, func() { add(&o, "GET /s", names[i%len(names)]); i++ }); n != 0 {
		t.Errorf("%v allocations a note", n)
	}
}

func TestOriginsByManyAtOnce(t *testing.T) {
	var o Sample
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 10_000 {
				add(&o, "GET /s", "a")
				if i%100 == 0 {
					noted(&o)
				}
			}
		})
	}
	wait.Wait()
}
