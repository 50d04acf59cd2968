package middleware

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// sampleOrigin samples the origin of one request of a hot key.
func sampleOrigin(o *originSample, route, caller string) {
	if weight := o.weight(rand.Uint64()); weight > 0 {
		o.sample(route, caller, weight)
	}
}

// noted drains the sample and returns its counts, by kind and name.
func noted(o *originSample) map[string]int64 {
	got := map[string]int64{}
	o.drain(func(kind wire.OriginKind, name []byte, n int64) bool {
		got[string(kind)+" "+string(name)] += n
		return true
	})
	return got
}

func TestOriginsNoteTheFirstExactly(t *testing.T) {
	var o originSample
	for i := range sampleAll {
		sampleOrigin(&o, "GET /s", fmt.Sprint(i%4))
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
	var o originSample
	const n = 64_000
	for i := range n {
		caller := "rare" + fmt.Sprint(i)
		if i%2 == 0 {
			caller = "half"
		}
		sampleOrigin(&o, "", caller)
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
	var o originSample
	sampleOrigin(&o, strings.Repeat("é", 100), "")
	for name, n := range noted(&o) {
		if n != 1 || name != "r "+strings.Repeat("é", maxName/2) {
			t.Errorf("%q: %d", name, n)
		}
	}
	sampleOrigin(&o, "", strings.Repeat("x", maxName-1)+"é")
	for name := range noted(&o) {
		if name != "c "+strings.Repeat("x", maxName-1) {
			t.Errorf("%q was cut within a character", name)
		}
	}
}

func TestOriginsAllocateNothing(t *testing.T) {
	var o originSample
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("caller-", i)
	}
	i := 0
	if n := testing.AllocsPerRun(5000, func() { sampleOrigin(&o, "GET /s", names[i%len(names)]); i++ }); n != 0 {
		t.Errorf("%v allocations a note", n)
	}
}

func TestOriginsByManyAtOnce(t *testing.T) {
	var o originSample
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 10_000 {
				sampleOrigin(&o, "GET /s", "a")
				if i%100 == 0 {
					noted(&o)
				}
			}
		})
	}
	wait.Wait()
}

// A request on the fast path is sampled like any other, whatever the order of the callers.
func TestOriginsOfTheShortWay(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byAll, 3600, 1)}})
	const n = 32_000
	for _, q := range []string{"1", "2", "3"} {
		f.heat(t, "r GET /s?q="+q)
		req := ofQ(q)
		for i := range n {
			req.Caller = []string{"often", "rare", "often", "often"}[i%4]
			f.Check(req)
		}
		got := make(map[string]int64)
		f.yieldOrigins(func(o collector.KeyOrigin) bool {
			got[string(o.Kind)+" "+string(o.Name)] += o.N
			return true
		})
		if often, rare := got["c often"], got["c rare"]; often < n*65/100 || often > n*85/100 || rare < n*15/100 || rare > n*35/100 {
			t.Errorf("three fourths of %d requests are told to be %d, and the others %d", n, often, rare)
		}
	}
}
