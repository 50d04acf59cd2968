package limiter

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// A word that is taken from without a lock makes the same decisions and marks as its state, for any
// requests, returns and changes in between.
func TestAWordIsAskedAsItsStateIs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var quotas []rules.Quota
		for range rapid.IntRange(1, 3).Draw(rt, "quotas") {
			quotas = append(quotas, rules.Quota{
				Algorithm: rapid.SampledFrom([]rules.Algorithm{rules.TokenBucket, rules.GCRA, rules.LeakyBucket}).Draw(rt, "algorithm"),
				Rate:      rules.Rate{N: rapid.Int64Range(1, 9).Draw(rt, "n"), Per: time.Second},
				Burst:     rapid.Int64Range(1, 6).Draw(rt, "burst"),
			})
		}
		lent, err := NewBucket(&quotas[0], nil)
		if err != nil {
			rt.Fatal(err)
		}
		locked, err := NewBucket(&quotas[0], nil)
		if err != nil {
			rt.Fatal(err)
		}
		both := []*Bucket{lent, locked}
		withLock := func() {
			held := locked.held.Load()
			held.plan, held.lent.plan = nil, nil
		}
		withLock()
		now := time.Hour
		var took [][2]Request // the Returns of the takes from each, which has its own marks
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += rapid.SampledFrom([]time.Duration{0, 0, 0, 1, 150 * time.Millisecond, 2 * time.Second}).Draw(rt, "time")
			ask := Request{
				Kind: rapid.SampledFrom([]OpKind{Take, Take, Take, Return, Return, Return, Peek, AtMost, Reserve, Charge, Forget}).Draw(rt, "kind"),
				N:    rapid.Int64Range(-1, 7).Draw(rt, "permits"), Keep: rapid.Int64Range(0, 2).Draw(rt, "keep"),
				Within: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(rt, "within"),
			}
			asks := [2]Request{ask, ask}
			switch {
			case rapid.IntRange(0, 9).Draw(rt, "another quota") == 0:
				q := rapid.SampledFrom(quotas).Draw(rt, "quota")
				for _, b := range both {
					if err := b.SetQuota(&q, now); err != nil {
						rt.Fatal(err)
					}
				}
				withLock()
			case ask.Kind == Return && len(took) > 0:
				i := rapid.IntRange(0, len(took)-1).Draw(rt, "which")
				keep := min(ask.Keep, took[i][0].N)
				for k := range both {
					asks[k] = took[i][k]
					asks[k].N, asks[k].Keep, took[i][k].N = asks[k].N-keep, keep, keep
				}
			}
			got, want := lent.Do(now, asks[0]), locked.Do(now, asks[1])
			if got.Taken > 0 {
				took = append(took, [2]Request{got.Return(), want.Return()})
			}
			if want.Mark = got.Mark; got != want {
				rt.Fatalf("%+v at %v:\n got %+v\nwant %+v", asks, now, got, want)
			}
		}
	})
}

// A take after a return out of order has a mark that differs from the earlier take's at the same
// place.
func TestAMarkCountsWhatWasReturned(t *testing.T) {
	b, err := NewBucket(&rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Hour
	first := b.Do(now, Request{N: 3})
	b.Do(now, Request{N: 2})
	b.Do(now, first.Return())
	last := b.Do(now, Request{N: 2})
	now += time.Second
	if r := b.Do(now, last.Return()); r.Remaining != 9 {
		t.Errorf("%d remain, want 9: what was taken last comes back in full", r.Remaining)
	}
}
