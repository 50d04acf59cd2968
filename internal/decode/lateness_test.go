package decode

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

type nobody struct{}

func (nobody) Count(Count)                                 {}
func (nobody) AddHiddenCounts(time.Time, int64)            {}
func (nobody) SetHeldBackBound(int, int64, int64)          {}
func (nobody) AddHeldBack(HeldBack)                        {}
func (nobody) RecordLoss(time.Time)                        {}
func (nobody) ReduceLoss(time.Time)                        {}
func (nobody) RecordGap(Gap)                               {}
func (nobody) ExcludeFromGap(uint64, int, uint64, bool)    {}
func (nobody) AddHealedCount(Count, time.Time)             {}
func (nobody) MoveHealedCount(Count, time.Time, time.Time) {}

// A sender whose clock is slow is named within three seconds, and no longer once the clock is
// right. Single late packets, a fast clock or held-back counts do not name a sender.
func TestSlowClocksAreNamed(t *testing.T) {
	const step = 100 * time.Millisecond
	offsets := map[string]time.Duration{"right": 0, "slow": -12 * time.Second, "slower": -time.Minute, "fast": time.Minute, "within": -1900 * time.Millisecond}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := NewDecoder(&rules.Rules{}, wire.Encoding(0))
		seqs := make(map[string]uint64)
		send := func(name string, start, now time.Time) {
			seqs[name]++
			m := meta(name, 1, seqs[name])
			m.Start = start.UnixNano()
			d.Record(m, nil, now, true, nobody{})
		}
		now := noon
		run := func(lasts time.Duration, offset func(string) time.Duration) {
			for end := now.Add(lasts); now.Before(end); now = now.Add(step) {
				for name := range offsets {
					flush := now.Add(offset(name))
					send(name, flush.Add(-time.Duration(rng.IntN(100))*time.Millisecond), now)
					if rng.IntN(3) == 0 { // counts that were held back
						send(name, flush.Add(-time.Duration(rng.IntN(60))*time.Second), now)
					}
				}
			}
		}
		right := func(string) time.Duration { return 0 }
		run(5*time.Second, right)
		if s := d.Stats(); s.Late.N != 0 {
			t.Fatalf("seed %d: before: %+v", seed, s)
		}
		run(3*time.Second, func(name string) time.Duration { return offsets[name] })
		for range 20 {
			run(step, func(name string) time.Duration { return offsets[name] })
			if s := d.Stats(); s.Late.N != 2 || s.Late.Latest != "slower" || s.Late.Age < time.Minute || s.Late.Age > 61*time.Second {
				t.Fatalf("seed %d: %+v", seed, s)
			}
		}
		run(step, right)
		if s := d.Stats(); s.Late != (LateSenders{}) {
			t.Fatalf("seed %d: after: %+v", seed, s)
		}
	}
}

// A late sender that falls silent is forgotten with the other senders.
func TestLateSendersAreForgotten(t *testing.T) {
	d := NewDecoder(&rules.Rules{}, wire.Encoding(0))
	for i := range uint64(40) {
		now := noon.Add(time.Duration(i) * 100 * time.Millisecond)
		for j := range 3 {
			m := meta(fmt.Sprint("api-", j), 1, i+1)
			m.Start = now.Add(-time.Hour).UnixNano()
			d.Record(m, nil, now, true, nobody{})
		}
	}
	if s := d.Stats(); s.Late.N != 3 {
		t.Fatalf("%+v", s)
	}
	for i := range uint64(3) {
		now := noon.Add(2*time.Minute + time.Duration(i)*senderLife)
		m := meta("another", 1, i+1)
		m.Start = now.UnixNano()
		d.Record(m, nil, now, true, nobody{})
	}
	if s := d.Stats(); s.Late.N != 0 {
		t.Fatalf("%+v", s)
	}
}
