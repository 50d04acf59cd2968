package base

import (
	"sync"
	"testing"
)

func TestGuarded(t *testing.T) {
	var g Guarded[struct{ A, B int }]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				g.Change(func(v *struct{ A, B int }) { v.A, v.B = v.A+1, v.B+1 })
				if v := g.Load(); v.A != v.B {
					t.Errorf("a change is seen in part: %+v", v)
				}
			}
		})
	}
	all.Wait()
	if v := g.Load(); v.A != 800 {
		t.Errorf("%+v after 800 changes", v)
	}
}
