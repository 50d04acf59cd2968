package limiter_test

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// A key that was under several quotas has all of its states after a restart, with the same permits
// left under each.
func TestSnapshotOfSeveralQuotas(t *testing.T) {
	quotas := []*rules.Quota{
		{Rate: rules.Rate{N: 10, Per: time.Minute}, Burst: 10},
		{Rate: perSecond5, Burst: 7},
		{Rate: perSecond5, Burst: 4, WarmUp: 3 * time.Second},
		{Algorithm: rules.LeakyBucket, Rate: perSecond5, Burst: 4, Shape: true},
		{Algorithm: rules.SlidingLog, Rate: rules.Rate{N: 10, Per: time.Minute}, Burst: 10},
		{Algorithm: rules.SlidingLog, Rate: perSecond5, Burst: 5},
		{Algorithm: rules.SlidingLog, Rate: rules.Rate{N: 20, Per: time.Hour}, Burst: 20},
		{Algorithm: rules.SlidingBlocks, Rate: rules.Rate{N: 5, Per: time.Minute}, Burst: 5, Penalty: time.Second},
		{Algorithm: rules.SlidingBlocks, Rate: rules.Rate{N: 5, Per: time.Minute}, Burst: 5, Blocks: 7, Penalty: time.Second},
		{Algorithm: rules.FixedWindow, Rate: rules.Rate{N: 10, Per: time.Minute}, Burst: 10},
		{Algorithm: rules.FixedWindow, Rate: rules.Rate{N: 10, Per: time.Hour}, Burst: 10, Calendar: rules.CalendarHour},
	}
	rapid.Check(t, func(rt *rapid.T) {
		m, now := memoryAt(t, limiter.MemoryConfig{})
		for range rapid.IntRange(1, 30).Draw(rt, "asks") {
			memoryDo(t, m, rapid.SampledFrom(quotas).Draw(rt, "quota"), "key", limiter.Request{
				Kind: rapid.SampledFrom([]limiter.OpKind{limiter.Take, limiter.Reserve, limiter.Charge}).Draw(rt, "kind"),
				N:    rapid.Int64Range(1, 4).Draw(rt, "n"), Within: time.Minute,
			})
			now.Add(rapid.Int64Range(0, int64(2*time.Second)).Draw(rt, "later"))
		}
		var b bytes.Buffer
		if _, _, err := m.Snapshot(&b); err != nil {
			rt.Fatal(err)
		}
		again, clock := memoryAt(t, limiter.MemoryConfig{})
		clock.Store(now.Load())
		if _, _, err := again.Restore(&b); err != nil {
			rt.Fatal(err)
		}
		for _, q := range quotas {
			ask := limiter.Request{Kind: limiter.Peek, N: 1}
			if got, want := memoryDo(t, again, q, "key", ask), memoryDo(t, m, q, "key", ask); got != want {
				rt.Fatalf("%+v:\n got %+v\nwant %+v", *q, got, want)
			}
		}
	})
}
