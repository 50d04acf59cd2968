package decode

import (
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hotRule is a rule that finds hot keys: threshold n in a window of per.
func hotRule(id string, n int64, per time.Duration) hotparam.Rule {
	route, err := hotparam.ParseRoute("*")
	if err != nil {
		panic(err)
	}
	return hotparam.Rule{
		ID:    id,
		Match: hotparam.Match{Route: route},
		By:    hotparam.By{Kind: hotparam.ByAll},
		Hot:   []hotparam.Threshold{hotparam.NewThreshold(hotparam.Rate{N: n, Per: per})},
	}
}

func testRules(rules ...hotparam.Rule) *hotparam.Rules {
	return &hotparam.Rules{Namespace: "shop", Rules: rules}
}

var outside = netip.MustParseAddr("192.0.2.1")
