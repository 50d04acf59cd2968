package aggregator

import (
	"net/netip"
	"time"

	"github.com/hotparam/hotparam/wire"
)

// stream is what the meta line that came last on a connection says of the lines after
// it: packets that are sent as lines keep what they have in common.
type stream struct {
	peer      func() netip.Addr // where the connection comes from
	common    Count
	meta      *wire.Meta // nil: it could not be read
	from      *sender
	came      time.Time // when the meta line came; zero: there is none
	ours      bool      // it could be read
	duplicate bool      // the packet had come before
}

// packetLife is how long after its meta line the lines of a packet may come: it is
// sent at once, and what comes later is somebody else's, by way of a relay.
const packetLife = 5 * time.Second

// stream decodes whole lines of a connection, of which s is the state. A meta line
// tells of the lines up to the next one; else it is as Packet.
func (d *Decoder) stream(s *stream, lines []byte, now time.Time, h Handler) {
	d.now = now
	for len(lines) > 0 {
		d.stats.packets.Add(1)
		if line, rest := cutLine(lines); wire.IsMeta(line) {
			lines = rest
			*s = stream{peer: s.peer, common: Count{When: now}, came: now}
			m, err := wire.ParseMeta(line)
			if s.ours = err == nil; !s.ours {
				d.stats.malformed.Add(1)
			} else {
				var ok bool
				s.from, ok = d.meta(&m, now, true, &s.common, h)
				s.meta, s.duplicate = &m, !ok
			}
		}
		packet := lines[:untilMeta(lines)]
		lines = lines[len(packet):]
		common := Count{When: now}
		var m *wire.Meta
		var from *sender
		if age := now.Sub(s.came); 0 <= age && age <= packetLife {
			if s.duplicate {
				continue
			}
			common, m, from = s.common, s.meta, s.from
		}
		if m == nil {
			d.senders.noSums(now)
		}
		d.lines(packet, common, m, from, m != nil, h)
	}
}

// untilMeta is where the first meta line begins.
func untilMeta(lines []byte) int {
	for rest := lines; len(rest) > 0; {
		at := len(lines) - len(rest)
		var line []byte
		if line, rest = cutLine(rest); wire.IsMeta(line) {
			return at
		}
	}
	return len(lines)
}
