package limiter_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// A key of a full table is asked under several quotas one after the other. It is never admitted
// more than if it had stayed in the table, whatever quota it has when it returns and whatever
// permits are returned.
func TestEvictedKeysKeepToAllTheirQuotas(t *testing.T) {
	const s = time.Second
	window := func(a rules.Algorithm, per time.Duration) *rules.Quota {
		return quota(rules.Quota{Algorithm: a, Rate: rules.Rate{N: 1, Per: per}, Burst: 1})
	}
	calendar := func(c rules.Calendar) *rules.Quota {
		return quota(rules.Quota{Algorithm: rules.FixedWindow, Calendar: c, Rate: rules.Rate{N: 1, Per: rules.CalendarPeriods[c]}, Burst: 1})
	}
	bucket := func(n int64, per time.Duration, burst int64) *rules.Quota {
		return quota(rules.Quota{Algorithm: rules.TokenBucket, Rate: rules.Rate{N: n, Per: per}, Burst: burst})
	}
	locking := bucket(7, time.Minute, 1)
	locking.Penalty = time.Millisecond
	slow, fast := bucket(1, s, 3), bucket(3, s, 3)
	one, two, thousand := bucket(1, s, 1), bucket(1, s, 2), bucket(1000, s, 4)
	logOf6, logOf1 := window(rules.SlidingLog, 6*s), window(rules.SlidingLog, s)
	blocksOf6, blocksOf1 := window(rules.SlidingBlocks, 6*s), window(rules.SlidingBlocks, s)
	blocksOf6.Blocks, blocksOf1.Blocks = 2, 2
	take := func(n int64) limiter.Request { return limiter.Request{N: n} }
	later := func(n int64) limiter.Request { return limiter.Request{Kind: limiter.Reserve, N: n, Within: 20 * s} }
	for name, steps := range map[string][]evictedStep{
		"a longer window after a shorter one": {
			{quota: logOf6, ask: take(1), taken: 1}, {evict: true},
			{at: s / 2, quota: logOf1, ask: take(1)},
			{at: 2 * s, quota: logOf1, ask: take(1), taken: 1},
			{at: 4 * s, quota: logOf6, ask: take(1)},
		},
		"a reservation that other windows do not show": {
			{quota: blocksOf1, ask: take(1), taken: 1},
			{quota: blocksOf1, ask: later(1), taken: 1}, {quota: blocksOf6, ask: limiter.Request{Kind: limiter.Peek, N: 1}}, {evict: true},
			{quota: blocksOf6, ask: limiter.Request{Kind: limiter.Charge, N: 1}, taken: 1},
			{quota: blocksOf1, ask: limiter.Request{Kind: limiter.Peek, N: 1}},
			{at: s, quota: blocksOf1, ask: take(1)},
		},
		"a return of what a dropped key took": {
			{quota: calendar(rules.CalendarSecond), ask: take(1), taken: 1},
			{at: s, quota: calendar(rules.CalendarMinute), ask: take(1), taken: 1, sweep: true},
			{at: s, quota: calendar(rules.CalendarSecond), giveBack: 1},
			{at: 2 * s, quota: calendar(rules.CalendarMinute), ask: take(1)},
		},
		"a promise of a bucket, and a faster one": {
			{quota: slow, ask: take(3), taken: 3},
			{quota: slow, ask: later(1), taken: 1}, {evict: true},
			{quota: fast, ask: limiter.Request{Kind: limiter.Charge, N: 1}, taken: 1},
			{at: s + time.Microsecond, quota: fast, ask: take(1)},
		},
		"a promise of a bucket that returns before a faster one": {
			{quota: slow, ask: take(3), taken: 3},
			{quota: slow, ask: later(1), taken: 1}, {evict: true},
			{quota: slow, ask: limiter.Request{Kind: limiter.Charge, N: 1}, taken: 1},
			{quota: fast, ask: limiter.Request{Kind: limiter.Peek, N: 1}},
			{at: s + time.Microsecond, quota: fast, ask: take(1)},
		},
		"a mark of another bucket": {
			{quota: locking, ask: take(1), taken: 1}, {evict: true},
			{quota: two, ask: take(1), taken: 1},
			{quota: locking, ask: take(1)},
			{at: 8571428435, quota: locking, ask: take(1)},
			{at: 8571428435, quota: two, giveBack: 2},
			{at: 8571428435, quota: two, ask: take(1), taken: 1},
			{at: 8571428435, quota: locking, giveBack: 1},
			{at: 8571428435, quota: two, ask: take(1)}, // 16 ns are missing
		},
		"a slower quota": {
			{quota: thousand, ask: take(4), taken: 4}, {evict: true},
			{at: time.Millisecond, quota: slow, ask: limiter.Request{Kind: limiter.Peek, N: 1}},
			{at: 10 * time.Millisecond, quota: slow, ask: take(1)},
		},
		"a mark of a word of another quota": {
			{quota: one, ask: take(1), taken: 1},
			{quota: thousand, ask: take(1), taken: 1}, {evict: true},
			{quota: thousand, ask: take(1), taken: 1},
			{at: 2909963, quota: thousand, ask: take(2), taken: 2},
			{at: 3 * time.Millisecond, quota: one, giveBack: 1},
			{at: 3 * time.Millisecond, quota: thousand, ask: take(3)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // a stranger's debt hides the key's in some tables: each has its own seed
				runEvicted(t, steps)
			}
		})
	}
}

// evictedStep is a request of a key at an instant, or an event of the key.
type evictedStep struct {
	at       time.Duration
	quota    *rules.Quota
	ask      limiter.Request
	taken    int64 // at most; a stranger's debt may hide a place
	giveBack int   // instead of ask, the number of the take to return; the first is 1
	evict    bool  // instead of ask, others take the key's place
	sweep    bool  // sweep before ask
}

func quota(q rules.Quota) *rules.Quota {
	q = q.WithDefaults()
	return &q
}

func runEvicted(t *testing.T, steps []evictedStep) {
	const epoch = 1772409600 * time.Second
	now, strangers := epoch, 0
	keys := &fullKeys{now: func() time.Duration { return now }}
	var takes []limiter.Result
	for i, step := range steps {
		if step.evict {
			for range 4 {
				strangers++
				op := limiter.Op{Quota: keys.quota, Name: "limit", Key: "stranger" + strconv.Itoa(strangers), Request: limiter.Request{Kind: limiter.Charge, N: 100}}
				if _, err := keys.Do(t.Context(), op); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		now = epoch + step.at
		if step.sweep {
			keys.keys.Sweep(now)
		}
		op := limiter.Op{Quota: step.quota, Name: "limit", Key: "key", Request: step.ask}
		if step.giveBack > 0 {
			op.Request = takes[step.giveBack-1].Return()
		}
		r, err := keys.Do(t.Context(), op)
		if err != nil {
			t.Fatal(err)
		}
		if r.Taken > step.taken {
			t.Fatalf("step %d took %d, want at most %d: %+v", i+1, r.Taken, step.taken, r)
		}
		if r.Taken < step.taken && strangers == 0 {
			t.Fatalf("step %d took %d, want %d: %+v", i+1, r.Taken, step.taken, r)
		}
		if r.Taken > 0 {
			takes = append(takes, r)
		}
	}
}
