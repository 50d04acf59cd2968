//go:build !race

package claims

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/rules"
)

// jumpsUnderAttack is a run in which 32 keys jump from 5 to 160 requests a second among values
// that an attacker invents.
type jumpsUnderAttack struct {
	values  int // of the attacker, a second
	pool    int // how many there are before they come again; 0: each comes once
	network Network
	seed    uint64
	kafka   bool
	dropped func(since time.Duration) float64 // see [KindsCase]
}

const (
	jumpers     = 32
	jumpsAfter  = 12 * second // a baseline, and the time that it takes until it is known
	jumpsLength = jumpsAfter + 4*second
)

// run returns how long after its jump each key was found, and the keys that were found hot
// without a jump.
func (j jumpsUnderAttack) run(t *testing.T) (found map[string]time.Duration, wrong []string) {
	t.Helper()
	th := exact.NewThreshold(100, time.Second)
	th.Kind, th.Factor = "jump", exact.ParseRatio("4x")
	k, err := newKinds(KindsCase{
		Rules: []exact.RuleSpec{{By: "q", Hot: []exact.ThresholdSpec{th}}}, Instances: 10, Lines: 2000,
		Network: j.network, InARow: true, Seed: j.seed,
		Kafka: j.kafka, Dropped: j.dropped,
	})
	if err != nil {
		t.Fatal(err)
	}
	found = make(map[string]time.Duration)
	random := rand.New(rand.NewPCG(j.seed, 7))
	invented, due := 0, 0.0
	member := func(value string) []byte { return append(append(k.member[:0], k.members[0]...), "GET /s?q="+value...) }
	add := func(value string) {
		k.member = member(value)
		k.collectors[random.IntN(len(k.collectors))].Add(rules.Hash(k.member), k.member, 1)
	}
	k.deliver(k.began - quiet)
	for at := int64(0); at < jumpsLength; at += step {
		k.deliver(k.began + at)
		for range j.values / 100 {
			invented++
			n := invented
			if j.pool > 0 {
				n %= j.pool
			}
			add(fmt.Sprintf("invented%d", n))
		}
		rate := 5.0
		if at >= jumpsAfter {
			rate = 160
		}
		for due += rate * float64(step) / float64(second) * jumpers; due >= 1; due-- {
			add(fmt.Sprintf("jump%d", random.IntN(jumpers)))
		}
		if next := k.began + at + step; next%tenthSecond == 0 {
			k.flush(next-tenthSecond, next)
		}
		for key := range k.hot {
			if _, known := found[key.Text]; !known {
				found[key.Text] = time.Duration(at - jumpsAfter)
				if at < jumpsAfter || len(key.Text) > len("GET /s?q=jump00") {
					wrong = append(wrong, key.Text)
				}
			}
		}
	}
	return found, wrong
}

// A jump is found among the values that an attacker invents although packets are lost, late,
// doubled and out of order. The counts missing from the time before the jump are known by bucket,
// and each bucket has only a part of the keys.
func TestJumpsAreFoundUnderAttack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute: left out with -short")
	}
	for _, attack := range []jumpsUnderAttack{
		{values: 50_000}, {values: 50_000, pool: 50_000}, {values: 10_000},
	} {
		attack.seed = 1
		attack.network.Most = 20 * time.Millisecond
		lossless, wrong := attack.run(t)
		if len(lossless) != jumpers || len(wrong) > 0 {
			t.Errorf("%+v: %d found, and %q without a jump", attack, len(lossless), wrong)
		}
		for _, network := range []Network{
			{Most: 20 * time.Millisecond, Lost: 0.002}, {Most: 20 * time.Millisecond, Lost: 0.01},
			{Most: 20 * time.Millisecond, Lost: 0.02}, {Most: 20 * time.Millisecond, Lost: 0.05},
			{Most: 60 * time.Millisecond, Lost: 0.05, Doubled: 0.05},
		} {
			if attack.values < 50_000 && network.Lost < 0.05 || attack.pool > 0 && network.Lost != 0.02 {
				continue
			}
			attack.network = network
			found, wrong := attack.run(t)
			if len(wrong) > 0 {
				t.Errorf("%+v: %q are hot without a jump", attack, wrong)
			}
			inTime, late := 0, time.Duration(0)
			for key, at := range found {
				if d := at - lossless[key]; d <= 2*time.Second {
					inTime, late = inTime+1, max(late, d)
				}
			}
			if inTime < jumpers-1 {
				t.Errorf("%+v: %d of %d are found in time", attack, inTime, jumpers)
			}
			t.Logf("%+v: %d of %d are found in time, the last %v later than without loss", attack, inTime, jumpers, late)
		}
	}
}

// Kafka loses nothing, but an instance drops records while its queue is full, and reports that in
// later ones. A dropped count can belong to any key. While dropped counts are in the baselines,
// these are too high to be certain of a jump, but cause no false one. After that jumps are found
// again.
func TestJumpsAfterKafkaDrops(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	base := jumpsUnderAttack{values: 20_000, seed: 3, kafka: true}
	base.network.Most = 20 * time.Millisecond
	full := func(from, to time.Duration, part float64) func(time.Duration) float64 {
		return func(since time.Duration) float64 {
			if from <= since && since < to {
				return part
			}
			return 0
		}
	}
	jump := time.Duration(jumpsAfter)
	for _, c := range []struct {
		name    string
		dropped func(time.Duration) float64
		found   bool
	}{
		{"none", nil, true},
		{"long before", full(200*time.Millisecond, 900*time.Millisecond, 0.5), true},
		{"in the baseline", full(jump-4*time.Second, jump-3*time.Second, 0.5), false},
		{"at the jump", full(jump+2*time.Second, jump+4*time.Second, 0.2), true}, // they were found by then
	} {
		attack := base
		attack.dropped = c.dropped
		found, wrong := attack.run(t)
		if len(wrong) > 0 {
			t.Errorf("%s: %q are hot without a jump", c.name, wrong)
		}
		if c.found && len(found) != jumpers || !c.found && len(found) > jumpers/2 {
			t.Errorf("%s: %d of %d are found", c.name, len(found), jumpers)
		}
		t.Logf("%s: %d of %d are found", c.name, len(found), jumpers)
	}
}
