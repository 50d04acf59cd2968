package hotkeys

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// swapped is a set that reports each of its changes.
type swapped struct {
	*hotset.Set[int64]
	swaps chan<- string
}

func (s swapped) Update(version string, change published.Change) {
	s.Set.Update(version, change)
	if !change.Empty() {
		s.swaps <- version
	}
}

// BenchmarkPublishToSwap measures the time from Publish until the last of 20 instances has the key
// in force, over a real Redis and with the given number of other hot keys.
func BenchmarkPublishToSwap(b *testing.B) {
	const instances = 20
	for _, keys := range []int{0, 100, 1000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			server := testenv.Redis(b)
			p := testPublisher(b, testClient(b, server.URL()), func(c *PublisherConfig) { c.Cap = 2000 })
			defer testenv.Running(b, p.Run)()
			swaps := make(chan string, 64*instances) // versions
			member := func(i int) string { return fmt.Sprintf("GET /search?q=%d", i) }
			for range instances {
				target := swapped{hotset.New(func(h published.Hot, _ int64, _ bool) int64 { return h.Limit.N }, hotset.Config[int64]{}), swaps}
				defer testenv.Running(b, testWatcher(b, testClient(b, server.URL()), target).Run)()
			}
			var background published.Change
			for i := range keys {
				background.Hot = append(background.Hot, hot(member(i), float64(i), 50))
			}
			p.Publish(background)
			time.Sleep(1500 * time.Millisecond)
			for len(swaps) > 0 {
				<-swaps
			}
			var last []time.Duration
			on := false
			for b.Loop() {
				change := hots(hot("GET /search?q=phone", 1e6, 50))
				if on = !on; !on {
					change = cools(hot("GET /search?q=phone", 1e6, 50))
				}
				seen := make(map[string]int)
				from := time.Now()
				p.Publish(change)
				for version := ""; seen[version] < instances; {
					version = <-swaps
					seen[version]++
				}
				last = append(last, time.Since(from))
			}
			slices.Sort(last)
			b.ReportMetric(float64(last[len(last)/2])/1e6, "p50-ms")
			b.ReportMetric(float64(last[len(last)*99/100])/1e6, "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A renewal is one script, and Redis serves no one else while it runs.
func BenchmarkRenew(b *testing.B) {
	for _, n := range []struct{ keys, suspects, instances int }{{0, 0, 20}, {1000, 0, 20}, {0, 1000, 20}, {0, 0, maxHeartbeats}} {
		b.Run(fmt.Sprintf("keys=%d,suspects=%d,instances=%d", n.keys, n.suspects, n.instances), func(b *testing.B) {
			p := testPublisher(b, testClient(b, testenv.Redis(b).URL()), nil)
			var change published.Change
			for i := range n.keys {
				change.Hot = append(change.Hot, hot(text(i), float64(i), 50))
			}
			p.Publish(change)
			var suspects []published.Hot
			for i := range n.suspects {
				suspects = append(suspects, hot(text(i), float64(i), 50))
			}
			p.Suspects(0, suspects)
			var instances []published.Instance
			for i := range n.instances {
				instances = append(instances, published.Instance{Name: fmt.Sprint("api-", i), Heard: time.Now().Add(time.Hour)})
			}
			p.Instances(instances)
			b.ReportAllocs()
			for b.Loop() {
				must(b, p.renew(b.Context()))
			}
		})
	}
}
