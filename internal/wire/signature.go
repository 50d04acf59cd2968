package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"strconv"
	"strings"
)

// A signed packet ends its meta line with the field
//
//	,m:LLLL.HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH
//
// LLLL is the length of the lines after the meta line, without the newline between them
// and without one at the end: four hexadecimal digits. HH… are the first 16 bytes of an
// HMAC-SHA256 over the meta line up to and including the dot, and then the lines. The length
// shows a reader of a stream where the packet ends, so that it need not wait for the next
// one. Readers of earlier versions ignore the field.
//
// A Kafka record has the 32 digits in a header, [headerMAC]. The HMAC is over
//
//	hotparam.record:PARTITION\n
//	NAME:VALUE\n                  each other header that begins with hotparam-, in their order
//	\n
//	the record's value
const (
	macField  = ",m:"
	macDigits = 32
	macSize   = macDigits / 2
	// MACField is the number of bytes that the field adds to a meta line.
	MACField = len(macField) + 4 + 1 + macDigits

	recordHead    = "hotparam.record:"
	headersOfOurs = "hotparam-"
	headerMAC     = "hotparam-mac"
)

// MinKey is the minimum length of a key: the size of the hash (RFC 2104, section 3).
const MinKey = sha256.Size

// Reasons why a packet or record is not accepted.
var (
	ErrUnsigned = errors.New("wire: not signed")
	ErrMAC      = errors.New("wire: the MAC is wrong")
)

// MAC signs packets and records, and verifies them. Its methods do not allocate. It must be used
// by one goroutine at a time.
type MAC struct {
	keys  []hash.Hash
	sum   [sha256.Size]byte
	given [macSize]byte
	head  []byte
}

// NewMAC returns a MAC with keys of at least [MinKey] bytes. The first key signs. A
// signature by any of them is accepted.
func NewMAC(keys ...[]byte) *MAC {
	m := new(MAC)
	for _, key := range keys {
		m.keys = append(m.keys, hmac.New(sha256.New, key))
	}
	return m
}

// AppendMACField appends the field to a meta line, for [MAC.Sign] to fill in.
func AppendMACField(meta []byte) []byte {
	meta = append(meta, macField+"0000."...)
	for range macDigits {
		meta = append(meta, '0')
	}
	return meta
}

// Sign fills in the field of a packet whose meta line is meta bytes long. The packet must be
// shorter than 64 KiB.
func (m *MAC) Sign(packet []byte, meta int) {
	lines := packet[min(meta+1, len(packet)):]
	length := packet[meta-macDigits-5:][:4]
	for i, n := 3, len(lines); i >= 0; i, n = i-1, n>>4 {
		length[i] = "0123456789abcdef"[n&15]
	}
	hex.Encode(packet[meta-macDigits:], m.packet(m.keys[0], packet[:meta-macDigits], lines)[:macSize])
}

func (m *MAC) packet(h hash.Hash, meta, lines []byte) []byte {
	h.Reset()
	h.Write(meta)
	h.Write(lines)
	return h.Sum(m.sum[:0])
}

// SignedLength reads the length of the signed lines from a meta line. ok is false if the line is
// not a meta line, or is not signed.
func SignedLength(meta []byte) (n int, ok bool) {
	if !IsMeta(meta) || len(meta) < MACField {
		return 0, false
	}
	field := meta[len(meta)-MACField:]
	if string(field[:len(macField)]) != macField || field[MACField-macDigits-1] != '.' {
		return 0, false
	}
	for _, c := range field[len(macField):][:4] {
		digit := strings.IndexByte("0123456789abcdef", c)
		if digit < 0 {
			return 0, false
		}
		n = n<<4 | digit
	}
	return n, true
}

// Verify returns nil if a packet is signed by one of the keys. A newline at its end is not part
// of it.
func (m *MAC) Verify(packet []byte) error {
	meta, lines, _ := bytes.Cut(packet, []byte{'\n'})
	n, ok := SignedLength(meta)
	if !ok {
		return ErrUnsigned
	}
	lines = bytes.TrimSuffix(lines, []byte{'\n'})
	end := len(meta) - macDigits
	if n != len(lines) || !m.read(meta[end:]) {
		return ErrMAC
	}
	for _, h := range m.keys {
		if hmac.Equal(m.packet(h, meta[:end], lines)[:macSize], m.given[:]) {
			return nil
		}
	}
	return ErrMAC
}

// read reads the digits of a MAC. Only lower-case digits are valid, so a MAC has one spelling.
func (m *MAC) read(digits []byte) bool {
	if len(digits) != macDigits || bytes.ContainsAny(digits, "ABCDEF") {
		return false
	}
	_, err := hex.Decode(m.given[:], digits)
	return err == nil
}

// AppendRecordMAC appends the header that signs a record with these headers.
func (m *MAC) AppendRecordMAC(headers []Header, partition int32, value []byte) []Header {
	sum, _ := m.record(m.keys[0], headers, partition, value)
	return append(headers, Header{headerMAC, hex.AppendEncode(nil, sum[:macSize])})
}

// VerifyRecord returns nil if a record is signed by one of the keys.
func (m *MAC) VerifyRecord(headers []Header, partition int32, value []byte) error {
	found := 0
	for i := range headers {
		if headers[i].Key == headerMAC {
			if found++; !m.read(headers[i].Value) {
				return ErrMAC
			}
		}
	}
	switch found {
	case 0:
		return ErrUnsigned
	case 1:
	default:
		return ErrMAC
	}
	for _, h := range m.keys {
		if sum, ok := m.record(h, headers, partition, value); ok && hmac.Equal(sum[:macSize], m.given[:]) {
			return nil
		}
	}
	return ErrMAC
}

// record returns the HMAC of a record. ok is false if a header contains a separator, since two
// records could then have the same HMAC.
func (m *MAC) record(h hash.Hash, headers []Header, partition int32, value []byte) (_ []byte, ok bool) {
	m.head = append(strconv.AppendInt(append(m.head[:0], recordHead...), int64(partition), 10), '\n')
	for i := range headers {
		name := headers[i].Key
		if !strings.HasPrefix(name, headersOfOurs) || name == headerMAC {
			continue
		}
		if strings.ContainsAny(name, ":\n") || bytes.IndexByte(headers[i].Value, '\n') >= 0 {
			return nil, false
		}
		m.head = append(append(m.head, name...), ':')
		m.head = append(append(m.head, headers[i].Value...), '\n')
	}
	h.Reset()
	h.Write(append(m.head, '\n'))
	h.Write(value)
	return h.Sum(m.sum[:0]), true
}
