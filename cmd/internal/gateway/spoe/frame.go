package spoe

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Sizes in bytes. The size of a frame excludes the length before it.
const (
	lengthSize   = 4
	minFrameSize = 256 // which both sides must support
)

// frameType is the first byte of a frame.
type frameType byte

const (
	typeUnset             frameType = 0 // a further fragment
	typeHAProxyHello      frameType = 1
	typeHAProxyDisconnect frameType = 2
	typeNotify            frameType = 3
	typeAgentHello        frameType = 101
	typeAgentDisconnect   frameType = 102
	typeAck               frameType = 103
)

const flagFin = 1 // the last fragment, or the only one

// status is the reason for the end of a connection, as in DISCONNECT frames.
type status uint32

const (
	statusNormal        status = 0
	statusTimeout       status = 2
	statusTooBig        status = 3
	statusInvalid       status = 4
	statusNoVersion     status = 5
	statusNoFrameSize   status = 6
	statusNoCapability  status = 7
	statusBadVersion    status = 8
	statusBadFrameSize  status = 9
	statusFragmentation status = 10
)

var statusWords = map[status]string{
	statusNormal:        "normal",
	statusTimeout:       "a timeout occurred",
	statusTooBig:        "frame is too big",
	statusInvalid:       "invalid frame received",
	statusNoVersion:     "version value not found",
	statusNoFrameSize:   "max-frame-size value not found",
	statusNoCapability:  "capabilities value not found",
	statusBadVersion:    "unsupported version",
	statusBadFrameSize:  "max-frame-size too big or too small",
	statusFragmentation: "payload fragmentation is not supported",
}

func (s status) String() string {
	if words, ok := statusWords[s]; ok {
		return words
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// protocolError is a violation of the protocol by the peer. It ends the connection with its
// status.
type protocolError struct{ status status }

func (e *protocolError) Error() string { return e.status.String() }

func broken(s status) error { return &protocolError{s} }

// frame is one frame. Its payload aliases the bytes from which it was parsed.
type frame struct {
	kind       frameType
	flags      uint32
	stream, id uint64
	payload    []byte
}

// readFrame reads the bytes of one frame into buf, which grows as needed. It returns an error for
// a frame longer than limit, before it allocates.
func readFrame(in io.Reader, buf []byte, limit int) ([]byte, error) {
	var length [lengthSize]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return buf, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > uint32(limit) {
		return buf, broken(statusTooBig)
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(in, buf); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return buf, err
	}
	return buf, nil
}

// parseFrame parses a frame. It refuses fragments, since the door does not announce support for
// them.
func parseFrame(b []byte) (f frame, err error) {
	r := payloadReader{unread: b}
	f.kind = frameType(r.byte())
	if flags := r.next(4); flags != nil {
		f.flags = binary.BigEndian.Uint32(flags)
	}
	f.stream, f.id = r.varint(), r.varint()
	f.payload = r.unread
	switch {
	case r.bad:
		return frame{}, broken(statusInvalid)
	case f.kind == typeUnset || f.flags&flagFin == 0:
		return f, broken(statusFragmentation)
	}
	return f, nil
}

// appendHead appends the head of a frame, with a zero length; see putLength.
func appendHead(b []byte, kind frameType, stream, id uint64) []byte {
	b = append(b, 0, 0, 0, 0, byte(kind), 0, 0, 0, flagFin)
	return appendVarint(appendVarint(b, stream), id)
}

// appendDisconnect appends an AGENT-DISCONNECT frame, which ends a connection.
func appendDisconnect(b []byte, s status, message string) []byte {
	begin := len(b)
	b = appendHead(b, typeAgentDisconnect, 0, 0)
	b = appendUint32(appendText(b, "status-code"), uint32(s))
	b = appendString(appendText(b, "message"), message)
	putLength(b[begin:])
	return b
}
