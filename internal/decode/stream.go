package decode

import (
	"net/netip"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// Stream decodes one connection. It uses its decoder, so only one stream of a decoder may
// decode at a time.
type Stream struct {
	decoder *Decoder
	peer    func() netip.Addr
	header  header
	lines   int64 // number of well-formed, believed lines of the connection
}

// Understood returns the number of the connection's lines that were well formed and believed,
// whether or not they were counted.
func (s *Stream) Understood() int64 { return s.lines }

// understood returns how many lines the decoder has understood.
func (d *Decoder) understood() int64 { return d.stats.Lines.Load() - d.stats.Malformed.Load() }

// NewStream returns a stream for a connection from an address. The zero address means a Unix
// socket.
func (d *Decoder) NewStream(from netip.Addr) *Stream {
	return &Stream{decoder: d, peer: func() netip.Addr { return from }}
}

// Packet decodes one packet of a connection with length-prefixed packets, as [Decoder.Packet]
// does.
func (s *Stream) Packet(packet []byte, now time.Time, h Handler) {
	before := s.decoder.understood()
	s.decoder.peer = s.peer
	s.decoder.Packet(packet, now, h)
	s.lines += max(0, s.decoder.understood()-before)
}

// Lines decodes whole lines that arrived now. It returns the number of bytes at their end that
// begin a signed packet whose rest has not arrived. The caller passes these again, before the
// bytes that follow. last reports whether the connection ends with these lines.
func (s *Stream) Lines(lines []byte, last bool, now time.Time, h Handler) (unread int) {
	before := s.decoder.understood()
	defer func() { s.lines += max(0, s.decoder.understood()-before) }()
	s.decoder.peer = s.peer
	if s.decoder.mac != nil {
		return len(s.decoder.signedLines(lines, last, now, h))
	}
	s.decoder.streamLines(&s.header, lines, now, h)
	return 0
}

// header is the last meta line of a connection. It describes the lines after it, since packets
// that are sent as lines keep their meta line.
type header struct {
	common    Count
	line      []byte     // a copy of the line, since the caller reuses its buffer
	meta      *wire.Meta // views line; nil if it could not be read
	from      *sender
	came      time.Time // arrival of the meta line; zero if there is none
	duplicate bool      // whether the packet had arrived before
}

// packetLife is how long after its meta line the lines of a packet may arrive. A packet is sent
// at once, so later lines belong to another sender behind a relay.
const packetLife = 5 * time.Second

// streamLines decodes whole lines of a connection, whose newest header is s. A meta line
// describes the lines up to the next one. Otherwise it is like Packet.
func (d *Decoder) streamLines(s *header, lines []byte, now time.Time, h Handler) {
	d.now = now
	for len(lines) > 0 {
		d.stats.Packets.Add(1)
		if line, tail := cutLine(lines); wire.IsMeta(line) {
			lines = tail
			*s = header{common: Count{When: now}, line: append(s.line[:0], line...), came: now}
			m, err := wire.ParseMeta(s.line)
			if err != nil {
				d.stats.Malformed.Add(1)
			} else {
				var ok bool
				s.from, ok = d.readMeta(&m, now, true, &s.common, h)
				s.meta, s.duplicate = &m, !ok
			}
		}
		packet := lines[:metaOffset(lines)]
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
			d.senders.recordPlain(now)
		}
		d.decodeLines(packet, common, m, from, h)
	}
}
