package collector

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam"
)

// What a share has too much is of no key, so it is never hot here.
func TestWhatAShareHasTooMuchIsNeverHot(t *testing.T) {
	share := hotparam.Threshold{Kind: hotparam.Share, Factor: hotparam.Percent(50), Rate: hotparam.Rate{N: 5, Per: time.Second}}.WithDefaults()
	rules := &hotparam.Rules{Namespace: "shop", Rules: []hotparam.Rule{
		{ID: "r", By: hotparam.By{Kind: hotparam.ByEach}, Hot: []hotparam.Threshold{share, hotparam.NewThreshold(hotparam.Rate{N: 5, Per: time.Second})}},
	}}
	again, key := []byte("GET /s?~again&q"), []byte("GET /s?q=1")
	p := newProfiles(rules, false)
	if p.of([]byte("r"), again) != unknown || p.of([]byte("r"), key) == unknown || p.of([]byte("r"), []byte("GET /s?~more")) == unknown {
		t.Error("only what a share has too much is of no rule's threshold")
	}
}
