package decode

import (
	"bytes"
	"errors"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// authentic reports whether a packet is signed, if it has to be. Nothing of it is looked
// at before, so that what others send costs no more than this.
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

// fresh reports whether a signed packet is of now, and had not come before.
func (d *Decoder) fresh(m *wire.Meta, arrived time.Time) bool {
	if d.mac == nil {
		return true
	}
	t := d.trust
	if age := arrived.Sub(time.Unix(0, m.Sent)); age.Abs() > t.window {
		d.refuse(RefusedTime, d.source(), string(m.Instance), "age", age.Round(time.Millisecond).String())
		return false
	}
	if !t.replays.isNew(m, arrived, t.window) {
		d.refuse(RefusedReplay, d.source(), "")
		return false
	}
	return true
}

// AdmitsRecord reports whether a Kafka record is believed, as [Decoder.Believe] has it. m is
// what its headers say, nil if they are not ours; arrived is when a broker took it.
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
// it was signed with, and returns the rest: the beginning of a packet whose end has not
// arrived. last says that nothing follows.
func (d *Decoder) signedLines(lines []byte, last bool, now time.Time, h Handler) (rest []byte) {
	for len(lines) > 0 {
		meta, behind, _ := bytes.Cut(lines, []byte{'\n'})
		size, ok := wire.SignedLength(meta)
		whole := len(meta) + 1 + size
		switch {
		case !ok: // it is another sender's, up to where a packet begins
			whole = len(lines) - len(behind)
			whole += untilMeta(behind)
		case size == 0:
			whole = len(meta)
		case len(behind) <= size && !last: // a newline is to come, too
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
