package decode

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// The reported gaps never lack less of a key than is outstanding, although packets are lost,
// duplicated and reordered at random. At the end the gaps together lack exactly the lost counts of
// each bucket.
func TestBucketSumsBoundWhatIsMissing(t *testing.T) {
	rule := hotRule("jump", 100, time.Second)
	rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Jump, rules.NewFraction(4, 1)
	rules := testRules(rule, hotRule("rate", 100, time.Second))
	const keys, incarnation = 40, 77
	tight, outages := 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		type sent struct {
			meta   wire.Meta
			text   []byte
			counts [keys]int64
		}
		var all []sent
		var sums [wire.Buckets]uint32
		var buckets [keys]int
		for k := range buckets {
			buckets[k] = wire.BucketOf(wire.BucketHash(fmt.Appendf(nil, "k%d", k)), incarnation)
		}
		loose, number := uint64(0), uint64(rng.IntN(3))
		const packets = 80
		for seq := uint64(1); seq <= packets; seq++ {
			p := sent{meta: wire.Meta{Instance: []byte("i"), Incarnation: incarnation, Seq: seq, Start: noon.Add(time.Duration(seq) * 10 * time.Millisecond).UnixNano(), Held: 1, Sums: wire.Sums{Stated: true, Loose: loose}}}
			var stated *[wire.Buckets]uint32
			if seq%7 == 1 || seq == packets {
				number++
				stated = &sums
			}
			p.meta.Buckets = wire.AppendBuckets(nil, wire.JumpsMark(rules), number, stated)
			p.text = wire.AppendMeta(nil, p.meta)
			for k := range keys {
				if n := rng.Int64N(3) * rng.Int64N(2); n > 0 && seq < packets {
					p.text = append(wire.AppendKey(append(p.text, "\nshop.jump"...), wire.Plain, fmt.Appendf(nil, "k%d", k)), fmt.Sprintf(":%d|c", n)...)
					p.counts[k] = n
					sums[buckets[k]] += uint32(n)
					loose += uint64(n)
				}
			}
			p.text = append(p.text, "\nshop.rate.hot_param.k1:1|c"...)
			loose++
			all = append(all, p)
		}
		var arrive []sent
		lost := rng.IntN(6)
		outage := uint64(packets) // of several statements
		if lost > 3 {
			outage = uint64(rng.IntN(packets / 2))
		}
		for _, p := range all[1 : packets-1] {
			if down := outage <= p.meta.Seq && p.meta.Seq < outage+packets/2; rng.IntN(20) >= lost && !down {
				arrive = append(arrive, p)
			}
			if rng.IntN(8) == 0 {
				arrive = append(arrive, p)
			}
		}
		for range 150 * (seed % 3) { // they overtake each other
			i := rng.IntN(len(arrive) - 1)
			arrive[i], arrive[i+1] = arrive[i+1], arrive[i]
		}
		got := &keySums{of: make(map[string]int64)}
		d := NewDecoder(rules, wire.Plain)
		came, newest := make(map[uint64]bool), uint64(0)
		statement, tooLate := uint64(0), false
		for _, p := range slices.Concat(all[:1], arrive, all[packets-1:]) {
			d.Packet(p.text, noon.Add(time.Minute), got)
			came[p.meta.Seq], newest = true, max(newest, p.meta.Seq)
			of, _, _ := wire.ParseBuckets(nil, p.meta.Buckets, wire.JumpsMark(rules))
			statement = max(statement, of)
			tooLate = tooLate || statement-of >= MaxBuckets
			for k := range keys {
				missing, bound := int64(0), int64(0)
				joint := make(map[*Joint]int64)
				for _, q := range all[:newest] {
					if !came[q.meta.Seq] {
						missing += q.counts[k]
					}
				}
				for _, g := range got.gaps {
					if g.Buckets[0] == nil {
						bound += g.Loose
					}
					for _, b := range g.Buckets {
						if b == nil {
							break
						}
						if b.Incarnation != incarnation {
							t.Fatalf("seed %d: the gap is of incarnation %d", seed, b.Incarnation)
						}
						joint[b] += g.Loose
					}
				}
				for b, loose := range joint {
					bound += min(loose, int64(b.Missing[buckets[k]]))
				}
				if bound < missing {
					t.Fatalf("seed %d, after packet %d: %d are missing of k%d, and gaps lack %d of its bucket", seed, p.meta.Seq, missing, k, bound)
				}
			}
		}
		open := slices.DeleteFunc(slices.Collect(gapsOf(got)), func(g Gap) bool { return g.Loose == 0 })
		var lacks, missing [wire.Buckets]int64
		pointed, whole := make(map[*Joint]int), true
		for _, g := range open {
			whole = whole && g.Buckets[0] != nil
			for _, b := range g.Buckets {
				if pointed[b]++; b == nil || pointed[b] > 1 {
					continue
				}
				for i, n := range b.Missing {
					lacks[i] += int64(n)
				}
			}
		}
		delete(pointed, nil)
		for _, p := range all {
			for k, n := range p.counts {
				if !came[p.meta.Seq] {
					missing[buckets[k]] += n
				}
			}
		}
		if whole && !tooLate && len(open) > len(pointed) {
			if lost > 3 {
				outages++
			}
			if tight++; lacks != missing {
				t.Errorf("seed %d: %d gaps lack %d, of which %d", seed, len(open), missing, lacks)
			}
		}
		if lost == 0 && len(open) > 0 {
			t.Errorf("seed %d: all have come, and %d gaps are open", seed, len(open))
		}
	}
	if tight < 20 || outages < 5 {
		t.Errorf("gaps share a bound in %d runs, %d of them with an outage: the test tests little", tight, outages)
	}
}

// The sums of a sender include counts by the other rules that it had for a time, so the missing
// counts of that time are not divided by bucket.
func TestNoBucketsAcrossALeap(t *testing.T) {
	rule := hotRule("jump", 100, time.Second)
	rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Jump, rules.NewFraction(4, 1)
	rules := testRules(rule)
	for _, c := range []struct {
		leap  uint64
		known bool
	}{{1, true}, {100, true}, {wire.BucketsLeap, false}} {
		got := &keySums{of: make(map[string]int64)}
		d := NewDecoder(rules, wire.Plain)
		var sums [wire.Buckets]uint32
		for i, number := range []uint64{1, 1 + c.leap} {
			m := wire.Meta{Instance: []byte("i"), Incarnation: 1, Seq: 1 + 2*uint64(i), Start: noon.UnixNano(), Held: 1, Sums: wire.Sums{Stated: true, Loose: 5 * uint64(i)}}
			m.Buckets = wire.AppendBuckets(nil, wire.JumpsMark(rules), number, &sums)
			d.Packet(wire.AppendMeta(nil, m), noon.Add(time.Second), got)
		}
		for _, g := range got.gaps {
			if known := g.Buckets[0] != nil; known != c.known {
				t.Errorf("after %d statements buckets are known: %v", c.leap, known)
			}
		}
		if len(got.gaps) != 1 {
			t.Errorf("%d gaps, want one", len(got.gaps))
		}
	}
}

// Lines of a stream may arrive after a later packet of their sender, by another connection, and
// after their connection's buffer was used again. They still belong to the statement of their
// meta line.
func TestBucketsOfAStreamInParts(t *testing.T) {
	rule := hotRule("jump", 100, time.Second)
	rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Jump, rules.NewFraction(4, 1)
	rules := testRules(rule)
	const incarnation, late, lost = 1, 5, 7
	bucket := wire.BucketOf(wire.BucketHash([]byte("late")), incarnation)
	var none, sums [wire.Buckets]uint32
	sums[bucket] += late
	sums[wire.BucketOf(wire.BucketHash([]byte("lost")), incarnation)] += lost
	meta := func(seq, statement uint64, stated *[wire.Buckets]uint32, loose uint64) string {
		return string(wire.AppendMeta(nil, wire.Meta{
			Instance: []byte("i"), Incarnation: incarnation, Seq: seq, Start: noon.UnixNano(), Held: 1, Sums: wire.Sums{Stated: true, Loose: loose},
			Buckets: wire.AppendBuckets(nil, wire.JumpsMark(rules), statement, stated),
		})) + "\n"
	}
	got := &keySums{of: make(map[string]int64)}
	d := NewDecoder(rules, wire.Plain)
	one, other := d.NewStream(netip.Addr{}), d.NewStream(netip.Addr{})
	buffer := make([]byte, 0, 1<<10)
	for _, part := range []struct {
		by    *Stream
		lines string
	}{
		{one, meta(1, 1, &none, 0)},
		{one, meta(2, 1, nil, 0)},             // its line comes last
		{other, meta(4, 2, &sums, late+lost)}, // packet 3 is lost
		{one, fmt.Sprintf("shop.jump.hot_param.late:%d|c\n", late)},
	} {
		buffer = append(buffer[:0], part.lines...)
		part.by.Lines(buffer, false, noon.Add(time.Second), got)
		clear(buffer)
	}
	open := slices.DeleteFunc(slices.Collect(gapsOf(got)), func(g Gap) bool { return g.Loose == 0 })
	if len(open) != 1 || open[0].Buckets[0] == nil {
		t.Fatalf("%+v, want one gap, by bucket", open)
	}
	if n := open[0].Buckets[0].Missing[bucket]; n > 0 {
		t.Errorf("%d are missing of a bucket whose counts have arrived", n)
	}
}

func gapsOf(s *keySums) func(func(Gap) bool) {
	return func(yield func(Gap) bool) {
		for _, g := range s.gaps {
			if !yield(g) {
				return
			}
		}
	}
}
