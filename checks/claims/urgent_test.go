package claims

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/collector"
)

// With collectors that flush on their own, urgent keys each 5 ms, all claims hold. Keys are hot
// within milliseconds of the count that reaches the threshold.
func TestUrgent(t *testing.T) {
	size := StreamSize{Rate: 4000, Keys: 3000, Instances: 4, Length: 1500 * time.Millisecond}
	rule := NewRule(200, time.Second, time.Second/2)
	for name, c := range map[string]struct {
		stream func(uint64) (EventStream, error)
		within time.Duration
	}{
		// A key with 1,000 a second reaches 200 after 200 ms.
		"flat and hot": {FlatAndHot(size, 10, 1000), 200*time.Millisecond + 25*time.Millisecond},
		"flood":        {Flood(size, 10, 1000, true), 200*time.Millisecond + 25*time.Millisecond},
		"zipf":         {Zipf(size, 1), 0},
		"moving":       {Moving(size, 1000), 0},
		"bursts":       {Bursts(size, 1, 5, 250), 0},
	} {
		for _, network := range []Network{{Most: 2 * time.Millisecond}, networks[1], networks[2]} {
			t.Run(name+"/"+network.String(), func(t *testing.T) {
				c := Case{
					Name: name, Stream: c.stream, Rules: []HotRule{rule}, Instances: size.Instances, Keys: 2048, Memory: megabyte, Parts: 2, Lines: 100,
					Network: network, Within: c.within, Seed: 1,
				}
				if network.Most > 2*time.Millisecond {
					c.Within = 0
				}
				synctest.Test(t, func(t *testing.T) { lives(t, c) })
			})
		}
	}
}

// lives runs a case with collectors that flush on their own.
func lives(t *testing.T, c Case) {
	r := &run{Case: c, keys: make(map[uint64]int32), live: &live{
		step: int64(2 * time.Millisecond),
		start: func(ctx context.Context, at int64, all []*collector.Collector) func() {
			time.Sleep(time.Until(time.Unix(0, at)))
			ctx, cancel := context.WithCancel(ctx)
			var running sync.WaitGroup
			for _, c := range all {
				running.Go(func() {
					if err := c.Run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			return func() { cancel(); running.Wait() }
		},
		advanceTo: func(at int64) {
			time.Sleep(time.Until(time.Unix(0, at)))
			synctest.Wait()
		},
	}}
	result, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if result.Violations() > 0 {
		t.Errorf("%v, seed %d: %d violations: %s", c.Network, c.Seed, result.Violations(), result.String())
	}
	urgent := int64(0)
	for _, c := range r.collectors {
		urgent += c.Stats().Urgent
	}
	if result.Must == 0 || urgent == 0 {
		t.Errorf("%d keys reached the threshold, %d flushes were urgent", result.Must, urgent)
	}
}
