package decode

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// ruleSender is a sender that states sums by rule.
type ruleSender struct {
	*rand.Rand
	rules        *rules.Rules
	seq          uint64
	sums         wire.Sums
	byRule       [4]uint64
	healedBefore uint64 // healed counts of the previous process

	all []rulePacket
}

type rulePacket struct {
	seq   uint64
	text  []byte
	parts [4]uint64
}

const ruleLife = 77

func newRuleSender(rng *rand.Rand) *ruleSender {
	return &ruleSender{
		Rand: rng, rules: testRules(hotRule("a", 100, time.Second), hotRule("b", 100, time.Second)),
		sums: wire.Sums{Stated: true, Opened: 1},
	}
}

// send returns the next packet. If states is set, it states all sums.
func (s *ruleSender) send(states bool) *rulePacket {
	s.seq++
	p := rulePacket{seq: s.seq}
	m := wire.Meta{
		Instance: []byte("i"), Incarnation: ruleLife, Seq: s.seq, Start: noon.Add(time.Duration(s.seq) * 10 * time.Millisecond).UnixNano(), Held: 1, Sums: s.sums,
	}
	if states || s.IntN(3) == 0 {
		m.Rules = wire.AppendRuleSums(nil, wire.RulesMark(s.rules), s.byRule[:])
	}
	p.text = wire.AppendMeta(nil, m)
	for range s.IntN(8) {
		n, key, rule := 1+s.Uint64N(3), fmt.Appendf(nil, "k%d", s.IntN(40)), s.IntN(2)
		p.text = wire.AppendKey(append(p.text, "\nshop."+s.rules.Rules[rule].ID...), wire.Plain, key)
		p.text = fmt.Appendf(p.text, ":%d|c", n)
		s.sums.Loose += n
		p.parts[2*rule] += n
	}
	if s.IntN(3) == 0 {
		s.sums.Booked += 2
		p.text = wire.AppendKey(append(p.text, "\nshop.b"...), wire.Plain, []byte("booked"))
		p.text = wire.AppendAccount(append(p.text, ":2|c"...), wire.Account{Number: 1, Total: s.sums.Booked})
		p.parts[3] += 2
	}
	for i, n := range p.parts {
		s.byRule[i] += n
	}
	s.all = append(s.all, p)
	return &s.all[len(s.all)-1]
}

// missing returns the counts that have not come in the packets from one sequence number up to
// another one.
func (s *ruleSender) missing(from, to uint64, came map[uint64]bool) (missing [4]uint64) {
	for i := range s.all {
		if p := &s.all[i]; from <= p.seq && p.seq < to && !came[p.seq] {
			for at, n := range p.parts {
				missing[at] += n
			}
		}
	}
	return missing
}

// healed returns how many counts on accounts are known although their packets have not come.
func (s *ruleSender) healed(d *Decoder) uint64 { return s.healedBefore + uint64(d.Stats().Healed) }

// check compares the missing counts of d's gaps, and of its reports, with the true ones. It
// returns how many gaps are divided by rule and how many share their missing counts.
func (s *ruleSender) check(t *testing.T, when string, d *Decoder, got *keySums, came map[uint64]bool) (divided, shared int) {
	t.Helper()
	a := &d.senders.byName["i"].accounts
	together := make(map[*Joint]bool)
	for i := range a.gaps {
		g := &a.gaps[i]
		joint := got.gaps[g.ID].ByRule
		if joint != g.ByRule {
			t.Fatalf("%s: gap %d was reported with another bound", when, g.ID)
		}
		if lacks := s.missing(g.from, g.to+1, came); uint64(g.Loose) != lacks[0]+lacks[2] {
			t.Fatalf("%s: the gap from %d to %d lacks %d loose counts, told is %d", when, g.from, g.to, lacks[0]+lacks[2], g.Loose)
		}
		if g.lack == nil {
			continue
		}
		if divided++; together[joint] {
			shared++
		}
		together[joint] = true
		if g.lack.from > g.from || g.lack.to <= g.to {
			t.Fatalf("%s: gap from %d to %d is divided by the statements of %d and %d", when, g.from, g.to, g.lack.from, g.lack.to)
		}
		want := s.missing(g.lack.from, g.lack.to, came)
		for at, n := range joint.Missing {
			if most := want[at]; uint64(n) > most || uint64(n) < most-min(most, s.healed(d)*uint64(at%2)) {
				t.Fatalf("%s: %d are missing at place %d between %d and %d, told is %d", when, want[at], at, g.lack.from, g.lack.to, n)
			}
		}
	}
	return divided, shared
}

// arrive returns packets as a network delivers them: some lost, some twice, some overtaken.
func (s *ruleSender) arrive(packets []rulePacket, lost, swaps int) (arrive []rulePacket) {
	for _, p := range packets {
		if s.IntN(20) >= lost {
			arrive = append(arrive, p)
		}
		if s.IntN(8) == 0 {
			arrive = append(arrive, p)
		}
	}
	for range min(swaps, swaps*len(arrive)) {
		if i := s.IntN(len(arrive)); i > 0 {
			arrive[i], arrive[i-1] = arrive[i-1], arrive[i]
		}
	}
	return arrive
}

// Packets are lost, duplicated and reordered at random, and the decoder is replaced at random by
// one that continues from a snapshot. At any time gaps lack exactly the outstanding counts of each
// rule between the statements around them.
func TestRuleSumsAreWhatIsMissing(t *testing.T) {
	divided, shared, resumedGaps, carried := 0, 0, 0, 0
	for seed := range uint64(400) {
		s := newRuleSender(rand.New(rand.NewPCG(seed, 5)))
		const packets = 80
		for seq := range packets {
			s.send(seq == 0 || seq == packets-1)
		}
		lost, swaps := s.IntN(6), 150*s.IntN(3)
		d, got, came := NewDecoder(s.rules, wire.Plain), &keySums{of: make(map[string]int64)}, make(map[uint64]bool)
		hear := func(all []rulePacket) {
			for _, p := range all {
				d.Packet(p.text, noon.Add(time.Second), got)
				came[p.seq] = true
				n, m := s.check(t, fmt.Sprintf("seed %d, after packet %d", seed, p.seq), d, got, came)
				divided, shared = divided+n, shared+m
			}
		}
		rest := s.all
		if seed%2 == 0 { // a restart
			cut := 1 + s.IntN(packets/2)
			hear(append(rest[:1:1], s.arrive(rest[1:cut], lost, swaps)...))
			of := &snapshot.Snapshot{Cut: noon.Add(time.Second)}
			d.Save(of)
			data, _ := of.Append(nil)
			of, err := snapshot.Parse(data)
			if err != nil || !of.Renumber(d.senders.rules.CountsOf()) {
				t.Fatal(err)
			}
			newest := int(of.Senders[0].Seq)
			if of.Senders[0].Carried.Seq > 0 {
				carried++
			}
			first := newest + s.IntN(packets/4)
			read := first + s.IntN(20)*s.IntN(2)
			before := s.arrive(rest[first:read], lost, swaps)
			s.healedBefore = s.healed(d)
			d, got = NewDecoder(s.rules, wire.Plain), &keySums{of: make(map[string]int64)}
			for _, p := range before {
				d.Packet(p.text, noon.Add(time.Second), got)
				came[p.seq] = true
			}
			resume, err := d.Resume(of, noon.Add(time.Second), noon.Add(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			resume(got)
			s.check(t, fmt.Sprintf("seed %d, resumed with %d of %d packets from %d on after %d", seed, len(before), read-first, first+1, newest), d, got, came)
			if first > newest {
				resumedGaps++
			}
			rest = rest[read:]
		}
		hear(append(s.arrive(rest[:len(rest)-1], lost, swaps), rest[len(rest)-1]))
		for _, g := range d.senders.byName["i"].accounts.gaps {
			if g.lack == nil {
				t.Errorf("seed %d: the gap from %d to %d is not divided", seed, g.from, g.to)
			}
		}
	}
	if divided < 1000 || shared < 200 || resumedGaps < 100 || carried < 50 {
		t.Errorf("%d gaps are divided, %d share what they lack, %d are of a restart, %d of before it, too: the test tests little", divided, shared, resumedGaps, carried)
	}
}
