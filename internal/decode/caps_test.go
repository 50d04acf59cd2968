package decode

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

const spacious = 1 << 40

func withSums(seq, booked, loose uint64) string {
	return string(wire.AppendMeta(nil, wire.Meta{
		Instance: []byte("a"), Incarnation: 1, Seq: seq, Start: noon.UnixNano(), Held: 1,
		Sums: wire.Sums{Stated: true, Booked: booked, Loose: loose},
	})) + "\n"
}

// Counts over a cap are dropped and counted, and no claim is made about them. They are not
// reported as losses, and they are not missing when the next packet comes.
func TestCapOnCounts(t *testing.T) {
	for name, packet := range map[string]func(seq uint64, sent uint64, n int) string{
		"of an instance": func(seq, sent uint64, n int) string {
			return withSums(seq, 0, sent) + fmt.Sprintf("shop.terms.hot_param.k:%d|c", n)
		},
		"of an address": func(_, _ uint64, n int) string { return fmt.Sprintf("shop.terms.hot_param.k:%d|c", n) },
	} {
		t.Run(name, func(t *testing.T) {
			d := believing(t, &Trust{Caps: Caps{Counts: 100}})
			var got heard
			sent := uint64(0)
			for i, n := range []int{60, 50, 40, 1} {
				d.Packet([]byte(packet(uint64(i+1), sent, n)), noon, &got)
				sent += uint64(n)
			}
			d.Packet([]byte(packet(5, sent, 100)), noon.Add(time.Second), &got)
			if s := d.Stats(); s.Sum != 200 || s.Refused[RefusedCounts] != 2 {
				t.Errorf("sum %d, refused %v", s.Sum, s.Refused)
			}
			for _, told := range got {
				if !strings.HasPrefix(told, "rule") {
					t.Errorf("told %q", told)
				}
			}
		})
	}
}

// A gap after packets over a cap has the counts that were lost in it, and no more.
func TestGapAfterACapIsTheGap(t *testing.T) {
	d := believing(t, &Trust{Caps: Caps{Counts: 100}})
	var got heard
	d.Packet([]byte(withSums(1, 0, 0)+"shop.terms.hot_param.k:90|c"), noon, &got)
	d.Packet([]byte(withSums(2, 0, 90)+"shop.terms.hot_param.k:70|c"), noon, &got) // over the cap
	got = nil
	d.Packet([]byte(withSums(4, 0, 90+70+7)+"shop.terms.hot_param.k:1|c"), noon.Add(time.Second), &got)
	if text := strings.Join(got, "\n"); !strings.Contains(text, "7") || strings.Contains(text, "77") || !strings.HasPrefix(text, "gap") {
		t.Errorf("told %q, want that 7 are missing", got)
	}
}

// No sender can claim that it lost or dropped more than it could have sent.
func TestCapOnClaims(t *testing.T) {
	d := believing(t, &Trust{Caps: Caps{Counts: 100}})
	var got heard
	d.Packet([]byte(withSums(1, 0, 0)), noon, &got)
	d.Packet([]byte(withSums(3, 0, spacious)), noon, &got)
	d.Packet([]byte(withSums(5, spacious, spacious)), noon, &got)
	d.Packet([]byte(head(1, 0, spacious, 0)), noon, &got)
	d.Packet([]byte(head(2, 0, 1, spacious)), noon, &got)
	if len(got) > 0 || d.Stats().Refused[RefusedCounts] != 2 {
		t.Errorf("told %q, refused %v", got, d.Stats().Refused)
	}
	d.Packet([]byte(withSums(7, spacious, spacious+50)), noon, &got)
	if len(got) != 1 || !strings.HasPrefix(got[0], "gap") {
		t.Errorf("told %q, want what may be missing", got)
	}
}

// A flood of keys gets a limited number in a second. Keys with steady counts, and other senders,
// are not affected.
func TestCapOnKeys(t *testing.T) {
	const most = 1000
	d := believing(t, &Trust{Caps: Caps{Keys: most}})
	var got heard
	from := netip.MustParseAddr("192.0.2.1")
	d.peer = func() netip.Addr { return from }
	const heavy = 2 * most
	for i := range 20 * most {
		d.Packet(fmt.Appendf(nil, "shop.terms.hot_param.k%d:1|c", i), noon, &got)
		if i%10 == 0 {
			d.Packet([]byte("shop.terms.hot_param.heavy:1|c"), noon, &got)
		}
	}
	if s := d.Stats(); s.Counts-heavy < most*8/10 || s.Counts-heavy > most*13/10 || s.Counts+s.Refused[RefusedKeys] != 20*most+heavy {
		t.Errorf("%d keys, refused %v: want some %d", s.Counts-heavy, s.Refused, most)
	}
	if n := strings.Count(strings.Join(got, "\n"), `"heavy"`); n != heavy {
		t.Errorf("a key that comes all the time is counted %d times of %d", n, heavy)
	}
	before := d.Stats().Counts
	from = netip.MustParseAddr("192.0.2.2")
	d.Packet([]byte("shop.terms.hot_param.another:1|c"), noon, &got)
	from = netip.MustParseAddr("192.0.2.1")
	d.Packet([]byte("shop.terms.hot_param.later:1|c"), noon.Add(time.Second), &got)
	if n := d.Stats().Counts - before; n != 2 {
		t.Errorf("%d counts more of another address, and a second later, want 2", n)
	}
}

// The memory that a flood takes is bounded, however many senders there are.
func TestKeySetsAreBounded(t *testing.T) {
	d := believing(t, &Trust{Caps: Caps{Keys: 10}})
	var got heard
	var from netip.Addr
	d.peer = func() netip.Addr { return from }
	for i := range 2 * maxPlain {
		from = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		for k := range 8 {
			d.Packet(fmt.Appendf(nil, "shop.terms.hot_param.k%d:1|c", k), noon, &got)
		}
	}
	if n := len(d.tallies.byAddr); n != maxPlain {
		t.Errorf("%d addresses are followed", n)
	}
	from = netip.MustParseAddr("192.0.2.1")
	d.Packet([]byte("shop.terms.hot_param.k:1|c"), noon.Add(time.Minute), &got)
	if n := len(d.tallies.byAddr); n > 1 {
		t.Errorf("%d addresses are followed after a minute", n)
	}
}

// 20,000 instance names a second make no more entries than the cap allows. Their claims to hold
// back, to have dropped or to have lost counts are not believed either.
func TestCapOnNames(t *testing.T) {
	d := believing(t, &Trust{Caps: DefaultCaps})
	var got heard
	attacker, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	from := attacker
	d.peer = func() netip.Addr { return from }
	const seconds, perSecond = 5, 20_000
	packet := func(name string, seq uint64) []byte {
		return wire.AppendMeta(nil, wire.Meta{Instance: []byte(name), Incarnation: 1, Seq: seq, Start: noon.UnixNano(), Held: 1})
	}
	for i := range seconds * perSecond {
		d.Packet(packet(fmt.Sprint("n", i), 1), noon.Add(time.Duration(i)*time.Second/perSecond), &got)
	}
	now := noon.Add(seconds * time.Second)
	if n := len(d.Instances(now)); n != DefaultCaps.NewNames {
		t.Errorf("%d instances, want %d", n, DefaultCaps.NewNames)
	}
	if n := d.Stats().Refused[RefusedNames]; n != seconds*perSecond-int64(DefaultCaps.NewNames) {
		t.Errorf("refused %d", n)
	}
	got = nil
	big := wire.AppendMeta(nil, wire.Meta{Instance: []byte("late"), Incarnation: 1, Seq: 1, Start: noon.UnixNano(), Held: 1000, Unsent: 1000})
	d.Packet(append(big, "\n"+innocent...), now, &got)
	if len(got) > 0 {
		t.Errorf("a name over the cap tells %q", got)
	}
	from = other
	d.Packet(append(packet("honest", 1), "\n"+innocent...), now, &got)
	from = attacker
	d.Packet(append(packet("n7", 2), "\n"+innocent...), now, &got)
	if len(got) != 2 {
		t.Errorf("another address, and a name that is known, told %q", got)
	}
	for i := range 2 * DefaultCaps.Names { // from everywhere
		from = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		d.Packet(packet(fmt.Sprint("x", i), 1), now, &got)
	}
	if n := len(d.Instances(now)); n != DefaultCaps.Names {
		t.Errorf("%d instances, want %d", n, DefaultCaps.Names)
	}
}

// For rules that count bytes the cap counts in KiB.
func TestCapOnBytes(t *testing.T) {
	ruleset := decoderRules()
	for i := range ruleset.Rules {
		ruleset.Rules[i].Count = rules.Bytes
	}
	d := NewDecoder(ruleset, wire.Plain)
	d.Believe(&Trust{Caps: Caps{Counts: 100}})
	var got heard
	d.Packet([]byte("shop.terms.hot_param.k:102400|c"), noon, &got)
	d.Packet([]byte("shop.terms.hot_param.k:1024|c"), noon, &got)
	if s := d.Stats(); s.Sum != 102400 || s.Refused[RefusedCounts] != 1 {
		t.Errorf("sum %d, refused %v", s.Sum, s.Refused)
	}
}

func TestCapsDoNotAllocate(t *testing.T) {
	d := believing(t, &Trust{Caps: Caps{Counts: spacious, Keys: 10, Names: 10, NewNames: 10}})
	from := netip.MustParseAddr("192.0.2.1")
	d.peer = func() netip.Addr { return from }
	packet := []byte(strings.Repeat("shop.terms.hot_param.k:1|c\n", 30))
	var sum counter
	d.Packet(packet, noon, &sum)
	if n := testing.AllocsPerRun(100, func() { d.Packet(packet, noon, &sum) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
