package decode

import (
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/internal/aggregatortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counters are the counters of [Stats].
type counters = Counters[int64]

var outside = netip.MustParseAddr("192.0.2.1")

var (
	hotRule      = aggregatortest.HotRule
	fields       = aggregatortest.MetaFields
	testRules    = aggregatortest.Rules
	decoderRules = aggregatortest.DecoderRules
	arrivals     = aggregatortest.Arrivals
	always       = aggregatortest.Always
)

type instance = aggregatortest.Instance
