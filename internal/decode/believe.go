package decode

import (
	"bytes"
	"errors"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// authentic reports whether a packet is signed, if it has to be. The rest of the packet is read
// only afterwards, so that other senders cost no more than this check.
func (d *Decoder) authentic(packet []byte) bool {
	return d.mac == nil || d.isSigned(d.mac.Verify(packet))
}

func (d *Decoder) isSigned(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, wire.ErrUnsigned):
		d.refuse(RefusedUnsigned, d.source(), "")
	default:
		d.refuse(RefusedMAC, d.source(), "")
	}
	return false
}

// fresh reports whether a signed packet was sent within the window and had not arrived before.
func (d *Decoder) fresh(m *wire.Meta, arrived time.Time) bool {
	if d.mac == nil {
		return true
	}
	if age := arrived.Sub(time.Unix(0, m.Sent)); age.Abs() > replayWindow {
		d.refuse(RefusedTime, d.source(), string(m.Instance), "age", age.Round(time.Millisecond).String())
		return false
	}
	if !d.trust.replays.isNew(m, arrived) {
		d.refuse(RefusedReplay, d.source(), "")
		return false
	}
	return true
}

// AdmitsRecord reports whether a Kafka record is believed, according to [Decoder.Believe]. m is
// read from its headers, nil if they are not ours. arrived is the time when a broker took it.
func (d *Decoder) AdmitsRecord(m *wire.Meta, headers []wire.Header, partition int32, value []byte, arrived time.Time) bool {
	if d.mac == nil {
		return true
	}
	if m == nil {
		return d.isSigned(wire.ErrUnsigned)
	}
	return d.isSigned(d.mac.VerifyRecord(headers, partition, value)) && d.fresh(m, arrived)
}

// signedLines decodes the packets among whole lines of a connection, each with the lines that
// it was signed with. It returns the beginning of a packet whose end has not arrived. last
// reports whether the connection ends with these lines.
func (d *Decoder) signedLines(lines []byte, last bool, now time.Time, h Handler) (tail []byte) {
	for len(lines) > 0 {
		meta, behind, _ := bytes.Cut(lines, []byte{'\n'})
		size, ok := wire.SignedLength(meta)
		whole := len(meta) + 1 + size
		switch {
		case !ok: // lines of another sender, up to the next packet
			whole = len(lines) - len(behind)
			whole += metaOffset(behind)
		case size == 0:
			whole = len(meta)
		case len(behind) <= size && !last: // a newline must follow, too
			return lines
		}
		whole = min(whole, len(lines))
		d.Packet(lines[:whole], now, h)
		if lines = lines[whole:]; len(lines) > 0 && lines[0] == '\n' {
			lines = lines[1:]
		}
	}
	return nil
}
