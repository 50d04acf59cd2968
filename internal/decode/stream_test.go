package decode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

func TestStreamPackets(t *testing.T) {
	const line, told = "shop.terms.hot_param.k:2|c\n", `rule 0 "k" 2 `
	type piece struct {
		after time.Duration
		lines string
	}
	for _, test := range []struct {
		name   string
		pieces []piece
		want   []string
		stats  Stats
	}{
		{"lines", []piece{{0, line + line}}, []string{told + "0s", told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 2, Counts: 2, Sum: 4}}},
		{"no newline at the end", []piece{{0, strings.TrimSpace(line)}}, []string{told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 1, Counts: 1, Sum: 2}}},
		{"a meta line is of the lines up to the next", []piece{{0, line + head(1, -time.Second, 1, 0) + "\n" + line + line + head(2, -time.Millisecond, 1, 0) + "\r\n" + line}},
			[]string{told + "0s", told + "-1s", told + "-1s", told + "-1ms"},
			Stats{Counters: counters{Packets: 3, Lines: 4, Counts: 4, Sum: 8}, Senders: 1}},
		{"of lines that come later, too", []piece{{0, head(1, -time.Second, 1, 0) + "\n" + line}, {time.Second, line}},
			[]string{told + "-1s", told + "-1s"},
			Stats{Counters: counters{Packets: 2, Lines: 2, Counts: 2, Sum: 4}, Senders: 1}},
		{"but not of those much later", []piece{{0, head(1, -time.Second, 1, 0) + "\n" + line}, {packetLife + 1, line}},
			[]string{told + "-1s", told + "5.000000001s"},
			Stats{Counters: counters{Packets: 2, Lines: 2, Counts: 2, Sum: 4}, Senders: 1}},
		{"nor when the clock was set back", []piece{{0, head(1, -time.Second, 1, 0) + "\n"}, {-time.Minute, line}},
			[]string{told + "-1m0s"},
			Stats{Counters: counters{Packets: 2, Lines: 1, Counts: 1, Sum: 2}, Senders: 1}},
		{"a packet that came twice counts once", []piece{{0, head(1, 0, 1, 0) + "\n" + line + head(1, 0, 1, 0) + "\n" + line}, {time.Second, line + head(2, 0, 1, 0) + "\n" + line}},
			[]string{told + "0s", told + "0s"},
			Stats{Counters: counters{Packets: 4, Lines: 2, Counts: 2, Sum: 4, Duplicates: 1}, Senders: 1}},
		{"a gap is a loss", []piece{{0, head(1, 0, 1, 0) + "\n" + head(4, 0, 1, 0) + "\n"}}, []string{"lost 0s"},
			Stats{Counters: counters{Packets: 2, LostPackets: 2}, Senders: 1}},
		{"a broken meta line leaves the arrival", []piece{{0, head(1, -time.Second, 1, 0) + "\n" + line + "hotparam.meta:1|c|#v:2\n" + line}},
			[]string{told + "-1s", told + "0s"},
			Stats{Counters: counters{Packets: 2, Lines: 2, Counts: 2, Sum: 4, Malformed: 1}, Senders: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := NewDecoder(decoderRules(), wire.Plain)
			var got heard
			var s header
			for _, p := range test.pieces {
				d.streamLines(&s, []byte(p.lines), noon.Add(p.after), &got)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("told\n%q\nwant\n%q", got, test.want)
			}
			if s := d.Stats(); s != test.stats {
				t.Errorf("stats\n%+v\nwant\n%+v", s, test.stats)
			}
		})
	}
}

// Successive packets in a stream are reported like the same packets in datagrams.
func FuzzStream(f *testing.F) {
	f.Add([]byte("shop.terms.hot_param.k:1|c"), []byte(head(1, 0, 2, 9)+"\nshop.terms.hot_param.k:1|c"))
	f.Add([]byte("hotparam.meta:1|c|#\n\n"), []byte("\r\nhotparam.meta:1|c|#v:1,i:a"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		begin := []byte(head(7, -time.Second, 1, 0) + "\n")
		var packets, streamed heard
		p, s := NewDecoder(decoderRules(), wire.Plain), NewDecoder(decoderRules(), wire.Plain)
		var state header
		for _, lines := range [][]byte{a, b} {
			if metaOffset(lines) < len(lines) {
				return // it is several packets
			}
			packet := slices.Concat(begin, lines, []byte{'\n'})
			p.Packet(packet, noon, &packets)
			s.streamLines(&state, packet, noon, &streamed)
		}
		if !slices.Equal(packets, streamed) || p.Stats() != s.Stats() {
			t.Errorf("streamed %q %+v, packets %q %+v", streamed, s.Stats(), packets, p.Stats())
		}
	})
}
