package decode

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

func meta(instance string, incarnation, seq uint64) *wire.Meta {
	return &wire.Meta{Instance: []byte(instance), Incarnation: incarnation, Seq: seq, Held: 1}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// Each packet is taken once, although packets are dropped, duplicated and reordered by less than a
// sender's memory. At the end the lost packets are exactly the ones that never arrived between the
// first and the last arrival.
func TestSendersTakeEachPacketOnceAndCountTheMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sender
		var missing losses
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
			l, duplicate := s.recordPacket(meta("api-1", 1, seq), noon, &missing)
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
		want := int64(0)
		for seq := begin; seq <= newest && newest > 0; seq++ {
			if !seen[seq] {
				want++
			}
		}
		if lost != want {
			t.Fatalf("%v: lost %d, want %d", arrive, lost, want)
		}
		for seq := uint64(1); seq < begin; seq++ { // unknown, as the first came in mid-stream
			if !seen[seq] {
				want++
			}
		}
		if n := missing.noticed[ring.Slot(tickOf(noon), lossSlots)].n; n != want {
			t.Fatalf("%v: %d are missing, want %d", arrive, n, want)
		}
	})
}

func TestSendersStartAnewWithEachIncarnation(t *testing.T) {
	var s sender
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
		{2, 5005, 4999, false},
		{2, 5005 - reorder, 0, true}, // too old to be remembered
		{2, 5005 - reorder + 1, -1, false},
		{2, 20_000, 14_994, false}, // farther ahead than the remembered range
		{2, 19_999, -1, false},
		{2, 20_000, 0, true},
	} {
		lost, duplicate := s.recordPacket(meta("api-1", step.incarnation, step.seq), noon, new(losses))
		if lost != step.lost || duplicate != step.duplicate {
			t.Errorf("packet %d of life %d: lost %d, duplicate %v; want %d, %v",
				step.seq, step.incarnation, lost, duplicate, step.lost, step.duplicate)
		}
	}
}

func TestSendersForgetTheSilent(t *testing.T) {
	s := newSenders(NumberRules(&rules.Rules{}))
	packet := func(instance string, seq uint64, now time.Time) (lost int64) {
		m := meta(instance, 1, seq)
		lost, _ = s.senderFor(m, now, nil).recordPacket(m, now, &s.losses)
		return lost
	}
	packet("gone", 1, noon)
	packet("here", 1, noon)
	packet("here", 2, noon.Add(senderLife))
	packet("here", 3, noon.Add(2*senderLife))
	if len(s.byName) != 1 {
		t.Errorf("%d senders are known, want the one that still sends", len(s.byName))
	}
	if lost := packet("here", 5, noon.Add(2*senderLife)); lost != 1 {
		t.Errorf("lost %d, want 1", lost)
	}
}

func TestSendersTellWhoIsLive(t *testing.T) {
	d := NewDecoder(&rules.Rules{}, wire.Plain)
	s := d.senders
	for i, name := range []string{"c", "a", "b"} {
		s.senderFor(meta(name, 1, 1), noon.Add(time.Duration(i)*6*time.Second), nil)
	}
	want := []published.Instance{{Name: "a", Heard: noon.Add(6 * time.Second)}, {Name: "b", Heard: noon.Add(12 * time.Second)}}
	if got := d.Instances(noon.Add(12 * time.Second)); !slices.Equal(got, want) {
		t.Errorf("live are %v, want %v", got, want)
	}
}

func TestSendersAreBounded(t *testing.T) {
	s := newSenders(NumberRules(&rules.Rules{}))
	for i := range maxSenders {
		s.senderFor(meta(fmt.Sprint("i", i), 1, 1), noon, nil)
	}
	if s.senderFor(meta("one-more", 1, 1), noon, nil) != nil || s.senderFor(meta("i7", 1, 2), noon, nil) == nil {
		t.Error("a sender more than the bound is followed, or a known one is not")
	}
}

// The reported time of losses is always that of the newest loss that has not been recovered.
func TestLossesAreTakenBack(t *testing.T) {
	var l losses
	var got heard
	first := l.recordMissing(2, noon)
	l.report(&got)
	l.subtractFound(first, 1)
	l.report(&got)
	second := l.recordMissing(1, noon.Add(time.Second))
	l.report(&got)
	l.subtractFound(second, 1)
	l.report(&got)
	l.subtractFound(first, 1)
	l.report(&got)
	l.recordMissing(1, noon.Add(2*time.Second))
	l.recordMissing(1, noon.Add(2*time.Second+lossSlots*Tick)) // the one before comes no more
	l.report(&got)
	l.subtractFound(tickOf(noon.Add(2*time.Second)), 1)
	l.subtractFound(tickOf(noon.Add(2*time.Second+lossSlots*Tick)), 1)
	l.report(&got)
	if want := (heard{"lost 0s", "lost 1s", "found all since 0s", "found all", "lost 5.2s", "found all since 2s"}); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// A loss is reported even if earlier ones lie in the future since the clock was set back.
func TestLossesAfterTheClockWasSetBack(t *testing.T) {
	var l losses
	var got heard
	l.recordMissing(1, noon.Add(time.Hour))
	l.report(&got)
	l.recordMissing(1, noon.Add(time.Second))
	l.report(&got)
	if want := (heard{"lost 1h0m0s", "lost 1s"}); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
