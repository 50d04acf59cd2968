package aggregator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/wire"
)

func meta(instance string, incarnation, seq uint64) wire.Meta {
	return wire.Meta{Instance: []byte(instance), Incarnation: incarnation, Seq: seq, Held: 1}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// Of packets that are dropped, doubled and reordered by less than the memory of
// a sender, each one is taken once, and at the end what counts as lost is what
// never came between the first and the last that did.
func TestSendersTakeEachPacketOnceAndCountTheMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s senders
		first := rapid.Uint64Range(1, 100).Draw(t, "first")
		n := rapid.IntRange(1, 150).Draw(t, "packets")
		var arrive []uint64
		for i := range n {
			for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2}).Draw(t, "copies") {
				arrive = append(arrive, first+uint64(i))
			}
		}
		for i := range arrive { // no packet is overtaken by more than 40 others
			if j := i + rapid.IntRange(0, 10).Draw(t, "swap"); j < len(arrive) {
				arrive[i], arrive[j] = arrive[j], arrive[i]
			}
		}
		seen := make(map[uint64]bool)
		var begin, newest uint64
		var lost int64
		for _, seq := range arrive {
			if newest > 0 && newest >= seq && newest-seq >= reorder {
				t.Skip("reordered by too much")
			}
			l, duplicate := s.packet(meta("api-1", 1, seq), noon)
			if duplicate != seen[seq] {
				t.Fatalf("packet %d of %v: duplicate is %v", seq, arrive, duplicate)
			}
			if len(seen) == 0 {
				begin = seq
			}
			seen[seq] = true
			newest = max(newest, seq)
			lost += l
		}
		missing := int64(0)
		for seq := begin; seq <= newest && newest > 0; seq++ {
			if !seen[seq] {
				missing++
			}
		}
		if lost != missing {
			t.Fatalf("%v: lost %d, want %d", arrive, lost, missing)
		}
	})
}

func TestSendersStartAnewWithEachIncarnation(t *testing.T) {
	var s senders
	for _, step := range []struct {
		incarnation, seq uint64
		lost             int64
		duplicate        bool
	}{
		{1, 900, 0, false}, // the instance is older than we are
		{1, 900, 0, true},
		{1, 899, 0, false}, // overtaken by the first that we saw
		{1, 899, 0, true},
		{1, 902, 1, false},
		{1, 901, -1, false},
		{2, 1, 0, false},
		{2, 1, 0, true},
		{2, 5, 3, false},
		{2, 1005, 999, false},
		{2, 1005 - reorder, 0, true}, // too far behind to tell
		{2, 1005 - reorder + 1, -1, false},
	} {
		lost, duplicate := s.packet(meta("api-1", step.incarnation, step.seq), noon)
		if lost != step.lost || duplicate != step.duplicate {
			t.Errorf("packet %d of life %d: lost %d, duplicate %v; want %d, %v",
				step.seq, step.incarnation, lost, duplicate, step.lost, step.duplicate)
		}
	}
}

func TestSendersForgetTheSilent(t *testing.T) {
	var s senders
	s.packet(meta("gone", 1, 1), noon)
	s.packet(meta("here", 1, 1), noon)
	s.packet(meta("here", 1, 2), noon.Add(senderLife))
	s.packet(meta("here", 1, 3), noon.Add(2*senderLife))
	if s.len() != 1 {
		t.Errorf("%d senders are known, want the one that still sends", s.len())
	}
	if lost, _ := s.packet(meta("here", 1, 5), noon.Add(2*senderLife)); lost != 1 {
		t.Errorf("lost %d, want 1", lost)
	}
}
