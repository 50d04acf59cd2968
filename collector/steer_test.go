package collector

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func keyOf(k keys, i int) rules.Key {
	key, _ := rules.ParseKey(string(k.members[i]))
	return key
}

// Hot keys and suspects are sent in full from the next flush on, whether they were already counted,
// came later, or moved to another table. Once they are neither, they no longer are.
func TestSteeredKeysAreExempt(t *testing.T) {
	const budget, cold, hot, suspect, late = 5, 0, 1, 2, 3
	k := newKeys(5_000)
	out := newSums()
	c := newCollector(t, Config{Sink: out, Rules: ruled(over(1<<40, time.Hour)), Budget: budget, MaxKeys: 16 * 128})
	now := time.Unix(1_700_000_000, 0)
	next := 100 // of the keys that make the flood
	flush := func(flood int) map[string]int64 {
		now = now.Add(base.FlushInterval)
		clear(out.counts)
		for i := range 3 {
			k.add(c, i, 1)
		}
		for range flood {
			k.add(c, next, 100)
			next++
		}
		c.Flush(t.Context(), now)
		return out.counts
	}
	check := func(when string, sent map[string]int64, want ...int) {
		t.Helper()
		for i := range late + 1 {
			wanted := int64(0)
			for _, w := range want {
				if w == i {
					wanted = 1
				}
			}
			if n := sent[string(k.members[i])]; min(n, 1) != wanted {
				t.Errorf("%s: %d of key %d were sent", when, n, i)
			}
		}
	}
	check("before", flush(50))
	c.Steer(published.Fleet{Suspects: []rules.Key{keyOf(k, suspect), keyOf(k, late)}}, []rules.Key{keyOf(k, hot), keyOf(k, suspect)})
	check("steered", flush(50), hot, suspect)
	k.add(c, late, 1)
	check("with the late one", flush(50), hot, suspect, late)
	was := c.shardOf(k.hashes[hot]).table.Load()
	for range 40 { // few at a time, so that the table is replaced before any part of it is full
		check("under a flood", flush(75), hot, suspect)
	}
	if c.shardOf(k.hashes[hot]).table.Load() == was {
		t.Error("the table was not replaced: the test shows little")
	}
	c.Steer(published.Fleet{Suspects: []rules.Key{keyOf(k, suspect)}}, nil)
	check("the suspect alone", flush(50), suspect)
	c.Steer(published.Fleet{}, nil)
	check("none", flush(50))
	if s := c.Stats(); s.Dropped.Sum() != 0 {
		t.Errorf("%+v", s)
	}
}

// The number of steered keys is bounded, and hot keys come first.
func TestSteerIsBounded(t *testing.T) {
	c := newCollector(t, Config{Sink: nowhere{}})
	var hot, suspects []rules.Key
	for i := range maxSteered {
		key := rules.Key{Rule: "r", Text: string(rune('a' + i))}
		suspects = append(suspects, key)
		if i%2 == 0 {
			hot = append(hot, key)
		}
	}
	c.Steer(published.Fleet{Suspects: suspects}, hot)
	n := map[flags]int{}
	for _, keys := range c.steering.Load().keys {
		for _, key := range keys {
			n[key.flags]++
		}
	}
	if n[isHot] != len(hot) || n[isSuspect] != maxSteered-len(hot) {
		t.Errorf("%v", n)
	}
}

// More instances lower the marks, even for keys that are already counted.
func TestInstancesChangeWhoIsACandidate(t *testing.T) {
	k := newKeys(20)
	out := newSums()
	c := newCollector(t, Config{Sink: out, Rules: ruled(over(400, time.Minute)), Budget: 1})
	now := time.Unix(1_700_000_000, 0)
	for i := range k.members {
		k.add(c, i, 15)
	}
	c.Flush(t.Context(), now)
	if s := c.Stats(); s.Candidates != 0 || s.Unsent != 15*20 {
		t.Errorf("%+v", s)
	}
	if m := c.shards[0].table.Load().slots[0].urgentCount.Load(); m != 85 && m != 100 {
		t.Errorf("the urgent count is %d", m)
	}
	c.Steer(published.Fleet{Instances: 10}, nil)
	c.lines = 40
	c.Flush(t.Context(), now.Add(base.FlushInterval))
	if s := c.Stats(); s.Candidates != 20 || s.Unsent != 0 || s.MarkFactor != 1 {
		t.Errorf("%+v", s)
	}
}
