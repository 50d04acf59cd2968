package statsdsource

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

// Signed packets sent as lines count once each, however the connection splits them.
func TestSignedLinesInPieces(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	rules := testRules(hotRule("terms", 1000, time.Second))
	mac, now := wire.NewMAC(key), time.Now()
	var text []byte
	for i := range 20 {
		packet := wire.AppendMACField(wire.AppendMeta(nil, wire.Meta{
			Instance: []byte("a"), Incarnation: 1, Seq: uint64(i + 1), Start: now.UnixNano(), Sent: now.UnixNano(), Held: 1,
		}))
		meta := len(packet)
		packet = append(packet, strings.Repeat("\n"+prefixOfTerms+"k:2|c", i%4)...)
		mac.Sign(packet, meta)
		text = append(append(text, packet...), '\n')
	}
	for _, size := range []int{1, 7, 100, 1000, len(text)} {
		d := decode.NewDecoder(rules, wire.Plain)
		d.Believe(&decode.Trust{Mode: decode.TrustSigned, Keys: [][]byte{key}})
		out := &recordedFeed{Feed: aggregator.NewShards(aggregator.DetectorConfig{Rules: rules, Publisher: newRecorder()}, 1, 1).Feed(0), sums: make(map[string]int64)}
		out.Begin()
		s := d.NewStream(netip.Addr{})
		var f framer
		for rest := text[:len(text)-1]; len(rest) > 0; {
			n := copy(f.room(), rest[:min(size, len(rest))])
			rest = rest[n:]
			f.filled(n)
			for lines, ok := f.next(); ok; lines, ok = f.next() {
				f.unread(s.Lines(lines, false, now, out))
			}
		}
		rest, _ := f.last()
		if unread := s.Lines(rest, true, now, out); unread > 0 {
			t.Errorf("in pieces of %d: %d bytes are left", size, unread)
		}
		if got := d.Stats(); out.sums["k"] != 2*30 || got.Sum != 2*30 || got.Refused != [decode.Refusals]int64{} {
			t.Errorf("in pieces of %d: counted %d, refused %v", size, out.sums["k"], got.Refused)
		}
	}
}
