package decode

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/wire"
)

// BenchmarkCappedPacket decodes packets of 20 lines from one address, with 100,000 keys in
// rotation.
func BenchmarkCappedPacket(b *testing.B) {
	var packets [][]byte
	for i := range 5000 {
		var lines []string
		for k := range 20 {
			lines = append(lines, fmt.Sprintf("shop.terms.hot_param.q=%d:1|c", (i*20+k)*7919%100_000))
		}
		packets = append(packets, []byte(strings.Join(lines, "\n")))
	}
	for name, caps := range map[string]Caps{"none": {}, "counts": {Counts: DefaultCaps.Counts}, "default": DefaultCaps} {
		b.Run(name, func(b *testing.B) {
			d := NewDecoder(decoderRules(), wire.Plain)
			d.Believe(&Trust{Caps: caps})
			d.peer = func() netip.Addr { return outside }
			var sum counter
			b.ReportAllocs()
			now, i := noon, 0
			for b.Loop() {
				if i++; i%100_000 == 0 {
					now = now.Add(1e9) // as at two million lines a second
				}
				d.Packet(packets[i%len(packets)], now, &sum)
			}
		})
	}
}
