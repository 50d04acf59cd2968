package decode

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// heldBounds is a Handler that keeps the newest bound of each rule.
type heldBounds map[int]int64

func (heldBounds) Count(Count)                                 {}
func (heldBounds) AddHiddenCounts(time.Time, int64)            {}
func (heldBounds) RecordLoss(time.Time)                        {}
func (heldBounds) ReduceLoss(time.Time)                        {}
func (heldBounds) RecordGap(Gap)                               {}
func (heldBounds) ExcludeFromGap(uint64, int, uint64, bool)    {}
func (heldBounds) AddHealedCount(Count, time.Time)             {}
func (heldBounds) MoveHealedCount(Count, time.Time, time.Time) {}
func (h heldBounds) SetHeldBackBound(rule int, bound, _ int64) { h[rule] = bound }
func (h heldBounds) AddHeldBack(HeldBack)                      {}
func heldPacket(name string, seq uint64, start time.Time, held int64) []byte {
	return wire.AppendMeta(nil, wire.Meta{Instance: []byte(name), Incarnation: 1, Seq: seq, Start: start.UnixNano(), Held: held})
}

// Whatever instances claim to hold back, a rule's bound is at least twice the most that they held
// back during its longest window, summed over all instances. Once they hold nothing back, the
// bound drops to 0, with packets or without.
func TestHeldIsABoundOverEachRulesWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ruleset := testRules(hotRule("short", 5, time.Second), hotRule("long", 5, time.Minute), hotRule("both", 5, time.Second))
		ruleset.Rules[2].Hot = append(ruleset.Rules[2].Hot, rules.NewThreshold(rules.Rate{N: 9, Per: 10 * time.Second}))
		windows := []time.Duration{time.Second, time.Minute, 10 * time.Second}
		d, got := NewDecoder(ruleset, wire.Plain), heldBounds{}
		type said struct {
			when time.Time
			h    int64
		}
		names := []string{"a", "b", "c"}
		history := make(map[string][]said)
		now := noon
		for seq := range uint64(rapid.IntRange(1, 80).Draw(t, "packets")) {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "step")))
			name := rapid.SampledFrom(names).Draw(t, "instance")
			h := rapid.SampledFrom([]int64{1, 1, 2, 7, 100}).Draw(t, "h")
			d.Packet(heldPacket(name, seq+1, now, h), now, got)
			history[name] = append(history[name], said{now, h})
			for i, window := range windows {
				want := int64(0)
				for _, all := range history {
					most := int64(1)
					for _, s := range all {
						if now.Sub(s.when) <= window+DefaultGrace {
							most = max(most, s.h)
						}
					}
					want += 2 * (most - 1)
				}
				if got[i] < want {
					t.Fatalf("rule %d: at most %d is held back, want at least %d", i, got[i], want)
				}
			}
		}
		for range 200 { // no packet comes any more
			now = now.Add(time.Second)
			d.Advance(now, got)
		}
		for i := range windows {
			if got[i] != 0 {
				t.Fatalf("rule %d: still %d is held back", i, got[i])
			}
		}
		if n := len(d.senders.held.holding); n != 0 {
			t.Fatalf("%d instances are still followed", n)
		}
	})
}

// A clock that is set back by days does not keep a bound for days.
func TestHeldDecaysAfterTheClockWasSetBack(t *testing.T) {
	d, got := NewDecoder(testRules(hotRule("r", 5, time.Second)), wire.Plain), heldBounds{}
	d.Packet(heldPacket("a", 1, noon, 50), noon, got)
	now := noon.Add(-48 * time.Hour)
	d.Advance(now, got)
	if got[0] != 98 {
		t.Errorf("the bound is %d right after, want 98", got[0])
	}
	for range 20 {
		now = now.Add(time.Second)
		d.Advance(now, got)
	}
	if got[0] != 0 {
		t.Errorf("the bound is still %d", got[0])
	}
}
