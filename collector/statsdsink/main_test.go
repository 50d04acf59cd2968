package statsdsink

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

func newCollector(t testing.TB, c collector.Config) *collector.Collector {
	t.Helper()
	col, err := collector.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return col
}

// run runs a collector while f runs.
func run(t *testing.T, c *collector.Collector, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	f()
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// ruled returns rules with one rule, "terms", with these thresholds.
func ruled(hot ...rules.Threshold) *rules.Rules {
	return &rules.Rules{Rules: []rules.Rule{{ID: "terms", Hot: hot}}}
}

func over(n int64, per time.Duration) rules.Threshold {
	return rules.NewThreshold(rules.Rate{N: n, Per: per})
}

// keys are members with their hashes.
type keys struct {
	members [][]byte
	hashes  []uint64
}

func newKeys(n int) (k keys) {
	for i := range n {
		member := fmt.Append(nil, "terms GET /search?q=", i)
		k.members = append(k.members, member)
		k.hashes = append(k.hashes, rules.Hash(member))
	}
	return k
}

func (k keys) add(c *collector.Collector, i int, n uint64) { c.Add(k.hashes[i], k.members[i], n) }
