package decode

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/internal/wire/wiretest"
)

var (
	trustKey = []byte("0123456789abcdef0123456789abcdef")
	newKey   = []byte("fedcba9876543210fedcba9876543210")
)

func believing(t testing.TB, trust *Trust) *Decoder {
	t.Helper()
	d := NewDecoder(decoderRules(), wire.Plain)
	d.Believe(trust)
	return d
}

func refused(why ...PacketRefusal) (all [Refusals]int64) {
	for _, r := range why {
		all[r]++
	}
	return all
}

const innocent = "shop.terms.hot_param.q=innocent:200|c"

func TestSignedPacketsAreBelieved(t *testing.T) {
	const window = 30 * time.Second
	const line, told = "shop.terms.hot_param.k:2|c", `rule 0 "k" 2 `
	good := func(life, seq int, sent time.Duration) string {
		return wiretest.Sign(trustKey, fields("a", life, seq, sent), line)
	}
	type packet struct {
		at   time.Duration
		text string
	}
	for _, test := range []struct {
		name    string
		packets []packet
		want    []string
		refused []PacketRefusal
	}{
		{"signed", []packet{{0, good(1, 1, 0)}, {time.Second, wiretest.Sign(newKey, fields("a", 1, 2, time.Second), line)}}, []string{told + "0s", told + "1s"}, nil},
		{"a spoofed line", []packet{{0, innocent}}, nil, []PacketRefusal{RefusedUnsigned}},
		{"a spoofed packet", []packet{{0, head(1, 0, 1, 9) + "\n" + innocent}}, nil, []PacketRefusal{RefusedUnsigned}},
		{"a line appended", []packet{{0, good(1, 1, 0) + "\n" + innocent}}, nil, []PacketRefusal{RefusedMAC}},
		{"by another key", []packet{{0, wiretest.Sign([]byte(strings.Repeat("x", 32)), fields("a", 1, 1, 0), line)}}, nil, []PacketRefusal{RefusedMAC}},
		{"a replay", []packet{{0, good(1, 1, 0)}, {time.Second, good(1, 2, time.Second)}, {2 * time.Second, good(1, 1, 0)}, {2 * time.Second, good(1, 2, time.Second)}},
			[]string{told + "0s", told + "1s"}, []PacketRefusal{RefusedReplay, RefusedReplay}},
		{"a replay of an earlier life", []packet{{0, good(1, 1, 0)}, {time.Second, good(2, 1, time.Second)}, {2 * time.Second, good(1, 1, 0)}, {3 * time.Second, good(2, 2, 3*time.Second)}},
			[]string{told + "0s", told + "1s", told + "3s"}, []PacketRefusal{RefusedReplay}},
		{"a replay when the sender is forgotten", []packet{{0, good(1, 1, 0)}, {2 * senderLife, wiretest.Sign(trustKey, fields("b", 1, 1, 2*senderLife), line)}, {2*senderLife + time.Second, good(1, 1, 0)}},
			[]string{told + "0s", told + "2m0s"}, []PacketRefusal{RefusedTime}},
		{"a replay at the end of the window, of a clock that is fast", []packet{{0, good(1, 1, window)}, {window, wiretest.Sign(trustKey, fields("b", 1, 1, window), line)}, {2 * window, good(1, 1, window)}},
			[]string{told + "0s", told + "30s"}, []PacketRefusal{RefusedReplay}},
		{"out of order", []packet{{0, good(1, 1, 0)}, {0, good(1, 3, 0)}, {0, good(1, 2, 0)}, {0, good(1, 2, 0)}},
			[]string{told + "0s", told + "0s", told + "0s"}, []PacketRefusal{RefusedReplay}},
		{"too old, too new", []packet{{0, good(1, 1, -window)}, {0, good(1, 2, window)}, {0, good(1, 3, -window-1)}, {0, good(1, 4, window+1)}},
			[]string{told + "-30s", told + "0s"}, []PacketRefusal{RefusedTime, RefusedTime}},
		{"without the time at which it was sent", []packet{{0, wiretest.Sign(trustKey, "i:a,e:1,s:1,t:5,h:1,u:0", line)}}, nil, []PacketRefusal{RefusedTime}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := believing(t, &Trust{Mode: TrustSigned, Keys: [][]byte{trustKey, newKey}})
			var got heard
			for _, p := range test.packets {
				d.Packet([]byte(p.text), noon.Add(p.at), &got)
			}
			got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, "rule") }) // losses, which other tests look at
			if !slices.Equal(got, test.want) {
				t.Errorf("told\n%q\nwant\n%q", got, test.want)
			}
			if s := d.Stats(); s.Refused != refused(test.refused...) {
				t.Errorf("refused %v, want %v", s.Refused, test.refused)
			}
		})
	}
}

// A signed packet that cannot be read is not counted either, since it could be repeated without
// end.
func TestSignedButMalformed(t *testing.T) {
	d := believing(t, &Trust{Mode: TrustSigned, Keys: [][]byte{trustKey}})
	var got heard
	d.Packet([]byte(wiretest.Sign(trustKey, "i:a,s:0", innocent)), noon, &got)
	if s := d.Stats(); len(got) > 0 || s.Malformed != 1 {
		t.Errorf("told %q, %+v", got, s)
	}
}

// A forged packet leaves no state behind: neither its name nor its sequence number.
func TestForgedPacketsLeaveNoTrace(t *testing.T) {
	d := believing(t, &Trust{Mode: TrustSigned, Keys: [][]byte{trustKey}})
	var got heard
	d.Packet([]byte(wiretest.Sign(trustKey, fields("a", 1, 1, 0), innocent)), noon, &got)
	got = nil
	for i := range 20_000 {
		d.Packet(fmt.Appendf(nil, "%s\n%s", wire.AppendMACField([]byte(fmt.Sprintf("hotparam.meta:1|c|#v:1,%s", fields(fmt.Sprint("n", i), 1, 1, 0)))), innocent), noon, &got)
		d.Packet([]byte(wiretest.Sign(newKey, fields("a", 1, 2*i+5, 0)+",b:0.fffff.0.0.0.0.0", innocent)), noon, &got) // gaps
	}
	if s := d.Stats(); len(got) > 0 || s.Senders != 1 || s.LostPackets != 0 || s.Refused[RefusedMAC] != 40_000 || len(d.trust.replays.lives) != 1 {
		t.Errorf("told %q, %+v", got, s)
	}
}

// A stream is read like packets, in whatever pieces it arrives. Bytes between packets and altered
// packets are refused.
func TestSignedStreams(t *testing.T) {
	const line = "shop.terms.hot_param.k:2|c"
	var text string
	want := 0
	var refusals []PacketRefusal
	for i := range 30 {
		lines := strings.TrimSuffix(strings.Repeat(line+"\n", i%4), "\n")
		packet := wiretest.Sign(trustKey, fields("a", 1, i+1, 0), lines)
		switch {
		case i%7 == 3:
			text += innocent + "\n" + innocent + "\n"
			refusals = append(refusals, RefusedUnsigned)
		case i%7 == 5 && lines != "":
			packet = strings.Replace(packet, "k:2", "k:3", 1)
			refusals = append(refusals, RefusedMAC)
			want -= i % 4
		}
		want += i % 4
		text += packet + "\n"
	}
	for _, size := range []int{1, 7, 100, 1000, len(text)} {
		d := believing(t, &Trust{Mode: TrustSigned, Keys: [][]byte{trustKey}})
		var buffer []byte
		var got heard
		for rest := []byte(strings.TrimSuffix(text, "\n")); len(rest) > 0; {
			n := min(size, len(rest))
			buffer, rest = append(buffer, rest[:n]...), rest[n:]
			lines := buffer[:bytes.LastIndexByte(buffer, '\n')+1]
			left := d.signedLines(lines, false, noon, &got)
			buffer = buffer[len(lines)-len(left):]
		}
		if left := d.signedLines(buffer, true, noon, &got); len(left) > 0 {
			t.Errorf("%q is left", left)
		}
		s := d.Stats()
		if s.Counts != int64(want) || s.Sum != int64(2*want) || s.Refused[RefusedMAC] != refused(refusals...)[RefusedMAC] || s.Refused[RefusedUnsigned] < refused(refusals...)[RefusedUnsigned] {
			t.Errorf("in pieces of %d: %d counts, want %d, refused %v, want %v", size, s.Counts, want, s.Refused, refused(refusals...))
		}
	}
}

// A packet on a connection counts as soon as it is complete, without waiting for the next one.
func TestSignedStreamDoesNotWait(t *testing.T) {
	d := believing(t, &Trust{Mode: TrustSigned, Keys: [][]byte{trustKey}})
	var got heard
	if rest := d.signedLines([]byte(wiretest.Sign(trustKey, fields("a", 1, 1, 0), innocent)+"\n"), false, noon, &got); len(rest) > 0 || len(got) != 1 {
		t.Errorf("%q is left, told %q", rest, got)
	}
}

func FuzzSignedStream(f *testing.F) {
	f.Add([]byte(wiretest.Sign(trustKey, fields("a", 1, 1, 0), innocent) + "\n" + wiretest.Sign(trustKey, fields("a", 1, 2, 0), "") + "\n" + innocent))
	f.Add([]byte("hotparam.meta:1|c|#v:1,m:ffff.00000000000000000000000000000000\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d := NewDecoder(decoderRules(), wire.Plain)
		d.Believe(&Trust{Mode: TrustSigned, Keys: [][]byte{newKey}})
		var got heard
		rest := d.signedLines(text, false, noon, &got)
		if !bytes.HasSuffix(text, rest) {
			t.Errorf("%q is left of %q", rest, text)
		}
		if rest = d.signedLines(rest, true, noon, &got); len(rest) > 0 || len(got) > 0 {
			t.Errorf("%q is left, told %q", rest, got)
		}
	})
}

// For each reason at most one line is logged in ten seconds, and it names the address.
func TestRefusalsAreLoggedSeldom(t *testing.T) {
	var log bytes.Buffer
	d := believing(t, &Trust{Mode: TrustSigned, Keys: [][]byte{trustKey}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	d.peer = func() netip.Addr { return netip.MustParseAddr("::ffff:192.0.2.7") }
	var got heard
	for range 1000 {
		d.Packet([]byte(innocent), noon, &got)
		d.Packet([]byte(wiretest.Sign(newKey, fields("a", 1, 1, 0), innocent)), noon, &got)
	}
	d.Packet([]byte(wiretest.Sign(trustKey, fields("slow", 1, 1, -time.Minute), innocent)), noon, &got)
	if n := strings.Count(log.String(), "\n"); n != 3 || strings.Count(log.String(), "from=192.0.2.7") != 3 || !strings.Contains(log.String(), "age=1m0s instance=slow") {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

// A sender with the key pays only for the hash.
func TestVerificationDoesNotAllocate(t *testing.T) {
	d := believing(t, &Trust{Mode: TrustSigned, Keys: [][]byte{newKey, trustKey}, Caps: DefaultCaps})
	forged, text := []byte(wiretest.Sign([]byte(strings.Repeat("x", 32)), fields("a", 1, 1, 0), innocent)), []byte(nil)
	mac, seq := wire.NewMAC(trustKey), uint64(0)
	m := wire.Meta{Instance: []byte("a"), Incarnation: 1, Start: noon.UnixNano(), Held: 1, Sent: noon.UnixNano()}
	var sum counter
	packet := func() {
		seq++
		m.Seq = seq
		text = wire.AppendMACField(wire.AppendMeta(text[:0], m))
		meta := len(text)
		text = append(append(text, '\n'), innocent...)
		mac.Sign(text, meta)
		d.Packet(text, noon, &sum)
		d.Packet(forged, noon, &sum)
	}
	packet()
	if n := testing.AllocsPerRun(200, packet); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if s := d.Stats(); s.Refused[RefusedMAC] != int64(seq) || s.Counts != int64(seq) {
		t.Errorf("%+v", s)
	}
}

func BenchmarkSignedPacket(b *testing.B) {
	for name, mode := range map[string]TrustMode{"all": TrustAll, "signed": TrustSigned} {
		b.Run(name, func(b *testing.B) {
			d := believing(b, &Trust{Mode: mode, Keys: [][]byte{trustKey}, Caps: DefaultCaps})
			d.trust.Caps.Counts = 0
			mac := wire.NewMAC(trustKey)
			m := wire.Meta{Instance: []byte("a"), Incarnation: 1, Start: noon.UnixNano(), Held: 1, Sent: noon.UnixNano()}
			lines := strings.Repeat("\nshop.terms.hot_param.GET /s?q=123:2|c", 30)
			var sum counter
			var packet []byte
			b.ReportAllocs()
			for b.Loop() {
				m.Seq++
				packet = wire.AppendMACField(wire.AppendMeta(packet[:0], m))
				meta := len(packet)
				packet = append(packet, lines...)
				if mode == TrustSigned {
					mac.Sign(packet, meta) // as much again as verifying it
				}
				d.Packet(packet, noon, &sum)
			}
			b.ReportMetric(30*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
