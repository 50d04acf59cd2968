package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// draws is the number of keys in a stream before it starts over, a power of two.
const draws = 1 << 17

// distinct is the number of values that a stream is drawn from.
const distinct = 100_000

// zipf returns draws numbers below n. Number k occurs as often as Zipf's law with exponent 1.1
// says.
func zipf(n uint64) []uint64 {
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, n-1)
	drawn := make([]uint64, draws)
	for i := range drawn {
		drawn[i] = z.Uint64()
	}
	return drawn
}

// texts formats the numbers with a format with one %d. Equal texts share their bytes.
func texts(format string, numbers []uint64) []string {
	known := make(map[uint64]string)
	out := make([]string, len(numbers))
	for i, k := range numbers {
		s, ok := known[k]
		if !ok {
			s = fmt.Sprintf(format, k)
			known[k] = s
		}
		out[i] = s
	}
	return out
}

// testRules returns one rule for all parameters of all requests.
func testRules(b *testing.B, route string, threshold rules.Rate, limit *rules.Limit) *rules.Rules {
	b.Helper()
	r, err := rules.ParseRoute(route)
	if err != nil {
		b.Fatal(err)
	}
	return &rules.Rules{Namespace: "shop", Rules: []rules.Rule{{
		ID:    "terms",
		Match: rules.Match{Route: r},
		By:    rules.By{Kind: rules.ByAll},
		Hot:   []rules.Threshold{rules.NewThreshold(threshold)},
		Limit: limit,
	}}}
}

// unreachable is a threshold that no key reaches.
var unreachable = rules.Rate{N: rules.MaxRate, Per: time.Second}
