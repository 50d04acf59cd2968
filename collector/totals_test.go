package collector

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A total is never a candidate, nor hot on this instance alone, however many requests it counts.
func TestATotalIsNoCandidate(t *testing.T) {
	rule := rules.Rule{ID: "r", By: rules.By{Kind: rules.ByEach}, Hot: []rules.Threshold{rules.NewThreshold(rules.Rate{N: 5, Per: time.Second})}}
	p := newProfiles(&rules.Rules{Rules: []rules.Rule{rule}}, false)
	total, key := p.indexOf([]byte("r"), []byte("GET /s?*")), p.indexOf([]byte("r"), []byte("GET /s?q=1"))
	if total == key || len(p.all[total].levels) != 0 || len(p.all[key].levels) != 1 {
		t.Errorf("the profile of a total has %d levels, that of a key %d", len(p.all[total].levels), len(p.all[key].levels))
	}
	if p.all[total].keep != int64(time.Second) {
		t.Errorf("a total is held for %v", time.Duration(p.all[total].keep))
	}
}
