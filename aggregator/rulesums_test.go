package aggregator

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// Packets are lost and come late at random: what is said to be missing of a rule is never
// less than what is, of all packets since the last that told and before; and when all have
// come, none is.
func TestRuleSumsBoundWhatIsMissing(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		type packet struct {
			seq    uint64
			told   []uint64 // nil: it does not tell
			counts []uint64
		}
		sent := make([]uint64, 4)
		var all []packet
		for seq := uint64(1); seq <= 60; seq++ {
			p := packet{seq: seq, counts: make([]uint64, 4)}
			if rng.IntN(3) > 0 {
				p.told = slices.Clone(sent)
			}
			for i := range sent {
				p.counts[i] = uint64(rng.IntN(5))
				sent[i] += p.counts[i]
			}
			all = append(all, p)
		}
		var s ruleSums
		var newest uint64
		came := make(map[uint64]bool)
		missingBetween := func(from, to uint64, i int) (n uint64) {
			for _, p := range all {
				if from <= p.seq && p.seq < to && !came[p.seq] {
					n += p.counts[i]
				}
			}
			return n
		}
		var late []packet
		arrive := func(p packet) {
			if p.seq > newest {
				newest = p.seq
				if p.told != nil {
					between, since := s.take(p.seq, p.told)
					for i := range between {
						if want := missingBetween(since, p.seq, i); between[i] < want {
							t.Fatalf("seed %d: %d of rule sum %d are missing between %d and %d, told is %d", seed, want, i, since, p.seq, between[i])
						}
					}
				}
			}
			s.note(p.seq, p.counts)
			came[p.seq] = true
		}
		for _, p := range all {
			switch rng.IntN(8) {
			case 0:
				late = append(late, p)
			default:
				arrive(p)
			}
			if len(late) > 0 && rng.IntN(6) == 0 {
				arrive(late[0])
				late = late[1:]
			}
		}
		for _, p := range late {
			arrive(p)
		}
		between, _ := s.take(61, sent)
		for i, n := range between {
			if s.missing[i] != 0 || n != 0 {
				t.Errorf("seed %d: all have come, and %d of rule sum %d are missing", seed, n, i)
			}
		}
	}
}

// What is lost of one rule is no bound for the keys of another.
func TestLossIsOfItsRule(t *testing.T) {
	rules := testRules(hotRule("a", 100, time.Second), hotRule("b", 100, time.Second))
	decoder := NewDecoder(rules, wire.Plain)
	d := NewDetector(DetectorConfig{Rules: rules, Publisher: newRecorder()})
	d.Advance(noon)
	mark := wire.RulesMark(rules)
	byRule, sums := make([]uint64, 4), wire.Sums{Told: true}
	seq := uint64(0)
	packet := func(at time.Duration, rule string, n uint64, lost, tells bool) {
		seq++
		m := wire.Meta{Instance: []byte("i"), Incarnation: 1, Seq: seq, Start: noon.Add(at).UnixNano(), Held: 1, Sums: sums}
		if tells {
			m.Rules = wire.AppendRuleSums(nil, mark, byRule)
		}
		line := wire.AppendKey([]byte("shop."+rule), wire.Plain, []byte("k"))
		bytes := append(append(wire.AppendMeta(nil, m), '\n'), line...)
		bytes = append(bytes, []byte(":"+string(rune('0'+n))+"|c")...)
		sums.Loose += n
		byRule[2*(rule[0]-'a')] += n
		if !lost {
			now := noon.Add(at + hotparam.FlushEvery)
			d.Advance(now)
			decoder.Packet(bytes, now, d)
		}
	}
	high := func(rule int) int64 {
		v := d.rules[rule].views[0]
		_, high := v.span(hotparam.Hash([]byte("k")), []byte("k"), v.now, int64(v.Panes))
		return high
	}
	packet(0, "a", 1, false, true)
	packet(0, "b", 2, false, false)
	packet(100*time.Millisecond, "b", 7, true, true)
	packet(100*time.Millisecond, "a", 3, false, false) // which does not tell of whom the seven were
	if a, b := high(0), high(1); a != 4+7 || b != 2+7 {
		t.Errorf("high is %d and %d, want 11 and 9", a, b)
	}
	packet(200*time.Millisecond, "a", 1, false, true) // which does
	if a, b := high(0), high(1); a != 5 || b != 9 {
		t.Errorf("high is %d and %d, want 5 and 9", a, b)
	}
	packet(300*time.Millisecond, "a", 4, true, true)
	packet(400*time.Millisecond, "b", 1, false, true)
	if a, b := high(0), high(1); a != 9 || b != 10 {
		t.Errorf("high is %d and %d, want 9 and 10", a, b)
	}
}
