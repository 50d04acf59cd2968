package collector

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// The excess of a group's total belongs to no key, so it never makes a key hot here.
func TestWhatAShareHasTooMuchIsNeverHot(t *testing.T) {
	share := rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 5, Per: time.Second}}.WithDefaults()
	rules := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{
		{ID: "r", By: rules.By{Kind: rules.ByEach}, Hot: []rules.Threshold{share, rules.NewThreshold(rules.Rate{N: 5, Per: time.Second})}},
	}}
	again, key := []byte("GET /s?~again&q"), []byte("GET /s?q=1")
	p := newProfiles(rules, false)
	if p.indexOf([]byte("r"), again) != unknown || p.indexOf([]byte("r"), key) == unknown || p.indexOf([]byte("r"), []byte("GET /s?~more")) == unknown {
		t.Error("only what a share has too much is of no rule's threshold")
	}
}
