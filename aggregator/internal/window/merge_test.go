package window

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// lossModel holds the true losses of some senders, and a Missing that receives their reports.
type lossModel struct {
	*rand.Rand
	*Missing
	texts    [][]byte // texts of keys of rule 0; the last is always on accounts
	ids      uint64
	lost     []lostCount
	reported []decode.Gap
	buckets  bool
}

type lostCount struct {
	when time.Time
	key  int
	n    int64
}

// loseSome loses packets of half a second of a sender, whose sums divide the loss: by rule each
// tenth of a second, and by bucket once.
func (m *lossModel) loseSome(sender int, start time.Time, part float64) {
	incarnation := uint64(1000 + sender)
	var gaps []decode.Gap
	byBucket := make([]int64, wire.Buckets)
	for flush := range 5 {
		byRule, first := make([]int64, 4), len(gaps)
		from := start.Add(time.Duration(flush) * 100 * time.Millisecond)
		for range 2 { // packets
			if m.Float64() >= part {
				continue
			}
			m.ids++
			g := decode.Gap{ID: m.ids, From: from, To: from.Add(100 * time.Millisecond), Loose: m.Int64N(50), Booked: m.Int64N(3)}
			byRule[2] += g.Loose
			byRule[3] += g.Booked
			has := false // of the first key
			for range m.IntN(3) {
				key, n := m.IntN(len(m.texts)), 1+m.Int64N(3)
				has = has || key == 0
				m.lost = append(m.lost, lostCount{from.Add(time.Duration(m.IntN(100)) * time.Millisecond), key, n})
				if key == len(m.texts)-1 {
					g.Booked += n
					byRule[1] += n
				} else {
					g.Loose += n
					byRule[0] += n
					byBucket[wire.BucketOf(wire.BucketHash(m.texts[key]), incarnation)] += n
				}
			}
			other := m.Int64N(50) // of another key of the rule
			g.Loose += other
			byRule[0] += other
			byBucket[m.IntN(wire.Buckets)] += other
			m.Add(g)
			gaps = append(gaps, g)
			spared := m.key(len(m.texts) - 1)
			if m.IntN(3) > 0 {
				m.ExcludeKey(g.ID, spared, false) // it has no loose counts
			}
			if !has {
				m.ExcludeKey(g.ID, m.key(0), true)
			}
		}
		joint := &decode.Joint{Incarnation: incarnation, Missing: byRule}
		for i := first; i < len(gaps); i++ {
			gaps[i].ByRule = joint
		}
	}
	joint := &decode.Joint{Incarnation: incarnation, Missing: byBucket}
	for i := range gaps {
		if m.buckets {
			gaps[i].Buckets[0] = joint
		}
		m.Add(gaps[i])
	}
	if m.reported = append(m.reported, gaps...); len(m.reported) > 0 && m.IntN(2) == 0 { // one is reported again
		m.Add(m.reported[m.IntN(len(m.reported))])
	}
}

func (m *lossModel) key(i int) MissingKey { return MissingKey{rules.Hash(m.texts[i]), 0} }

// check compares the reported missing counts of each key and window with the true ones, and
// returns the sums of both.
func (m *lossModel) check(t *testing.T, now time.Time, longest time.Duration) (bound, truth int64) {
	t.Helper()
	for key := range m.texts {
		for part := time.Second; part <= longest; part *= 4 {
			end := now.Add(-time.Duration(m.Int64N(int64(longest - part + 1))))
			start, sum := end.Add(-part), int64(0)
			for _, l := range m.lost {
				if l.key == key && !l.when.Before(start) && l.when.Before(end) {
					sum += l.n
				}
			}
			lacks, _ := m.boundsFor(m.key(key), m.texts[key], start.UnixNano(), end.UnixNano())
			if lacks == published.Unknown || lacks < sum {
				t.Fatalf("key %d lacks %d of %v that ended %v ago, and was told to lack %d; %d gaps", key, sum, part, now.Sub(end), lacks, m.used)
			}
			bound, truth = bound+lacks, truth+sum
		}
	}
	return bound, truth
}

// Fifty instances lose 5% of their packets for ten windows of a minute, which makes more gaps than
// there is room for. The missing counts of a window stay known and are never understated.
func TestManyGapsAreMerged(t *testing.T) {
	for seed := range uint64(2) {
		for _, senders := range []int{1, 50, 4000} {
			m := &lossModel{Rand: rand.New(rand.NewPCG(seed, 1)), Missing: NewMissing(), buckets: seed%2 == 0}
			for i := range 8 {
				m.texts = append(m.texts, fmt.Appendf(nil, "k%d", i))
			}
			const longest = 10 * time.Minute
			start := time.Unix(1_767_355_200, 0)
			var bound, truth int64
			for at := time.Duration(0); at < longest; at += 500 * time.Millisecond {
				if senders > 50 { // each loses something once
					for range 8 {
						m.loseSome(m.IntN(senders), start.Add(at), 0.2)
					}
				} else {
					for sender := range senders {
						m.loseSome(sender, start.Add(at), 0.05*50/float64(max(senders, 5)))
					}
				}
				if at%(97*500*time.Millisecond) == 0 {
					b, n := m.check(t, start.Add(at), longest)
					bound, truth = bound+b, truth+n
				}
			}
			t.Logf("seed %d, %d senders: %d gaps, %d IDs; %d are told of %d", seed, senders, m.ids, len(m.byID), bound, truth)
			if m.buckets && senders <= 50 && bound > 30*truth {
				t.Errorf("seed %d, %d senders: %d are told of %d", seed, senders, bound, truth)
			}
			if m.ids < 2*maxMissing {
				t.Errorf("%d gaps: nothing is merged", m.ids)
			}
			if len(m.byID) > maxMissing*(maxMerged+1) {
				t.Errorf("%d IDs are kept", len(m.byID))
			}
		}
	}
}
