package decode

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// BenchmarkBucketSums decodes packets of 20 lines from an instance that states its bucket sums
// each 25 packets, as with 5,000 values a second. One rule has a jump and one has none.
func BenchmarkBucketSums(b *testing.B) {
	for _, kind := range []rules.ThresholdKind{rules.FixedRate, rules.Jump} {
		b.Run(fmt.Sprint(kind), func(b *testing.B) {
			record := summedRecords(kind)
			b.ReportAllocs()
			for b.Loop() {
				record()
			}
			b.ReportMetric(20*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

// Decoding the sums that instances state allocates nothing, whether or not their rules have a
// jump.
func TestBucketSumsDoNotAllocate(t *testing.T) {
	for _, kind := range []rules.ThresholdKind{rules.FixedRate, rules.Jump} {
		record := summedRecords(kind)
		record()
		if n := testing.AllocsPerRun(200, record); n > 0 {
			t.Errorf("%v: %v allocations", kind, n)
		}
	}
}

// summedRecords returns a function that decodes the next record of an instance whose rule has
// a threshold of this kind.
func summedRecords(kind rules.ThresholdKind) (record func()) {
	const packets, perStatement = 5000, 25
	rule := hotRule("r", 100, time.Second)
	if rule.Hot[0].Kind = kind; kind == rules.Jump {
		rule.Hot[0].Factor = rules.NewFraction(4, 1)
	}
	rules := testRules(rule)
	mark := wire.JumpsMark(rules)
	var lines, buckets [packets][]byte
	var sums [wire.Buckets]uint32
	for i := range packets {
		if mark != 0 && i%perStatement == 0 {
			buckets[i] = wire.AppendBuckets(nil, mark, uint64(i/perStatement), &sums)
		} else if mark != 0 {
			buckets[i] = wire.AppendBuckets(nil, mark, uint64(i/perStatement), nil)
		}
		for k := range 20 {
			key := fmt.Appendf(nil, "GET /s?q=invented%d", i*20+k)
			lines[i] = fmt.Appendf(lines[i], "shop.r.hot_param.%s:1|c\n", key)
			sums[wire.BucketOf(wire.BucketHash(key), 1)]++
		}
	}
	d := NewDecoder(rules, wire.Plain)
	m := wire.Meta{Instance: []byte("a"), Incarnation: 1, Start: noon.UnixNano(), Held: 1, Sums: wire.Sums{Stated: true}}
	var sum counter
	return func() {
		i := int(m.Seq % packets)
		if m.Seq++; i == 0 { // as another process
			m.Incarnation, m.Seq, m.Sums.Loose = m.Incarnation+1, 1, 0
		}
		m.Buckets = buckets[i]
		d.Record(&m, lines[i], noon, true, &sum)
		m.Sums.Loose += 20
	}
}
