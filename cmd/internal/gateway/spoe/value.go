package spoe

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// valueKind is the type of a value, in the low four bits of its first byte.
type valueKind byte

const (
	kindNull valueKind = iota
	kindBool
	kindInt32
	kindUint32
	kindInt64
	kindUint64
	kindIPv4
	kindIPv6
	kindString
	kindBinary
)

// trueFlag is set in the first byte of a boolean that is true.
const trueFlag = 0x10

// value is a typed value. The zero value is null.
type value struct {
	kind   valueKind
	number int64  // for booleans (1 is true) and integers
	bytes  []byte // for addresses, strings and binaries; aliases the frame
}

// payloadReader reads from a payload. A read that fails, because the payload ends or is not valid,
// sets bad; all further reads return zero values.
type payloadReader struct {
	unread []byte
	bad    bool
}

func (r *payloadReader) fail() {
	r.unread, r.bad = nil, true
}

func (r *payloadReader) byte() byte {
	if len(r.unread) == 0 {
		r.fail()
		return 0
	}
	b := r.unread[0]
	r.unread = r.unread[1:]
	return b
}

// varint reads a number in HAProxy's own encoding. A number below 240 is one byte. Otherwise the
// first byte holds the low four bits, and each further byte seven more. The high bit of a further
// byte is set if another follows.
func (r *payloadReader) varint() uint64 {
	first := r.byte()
	n := uint64(first)
	if first < 240 {
		return n
	}
	for shift := 4; ; shift += 7 {
		b := r.byte()
		if r.bad || shift > 63 || shift == 60 && b > 15 {
			r.fail()
			return 0
		}
		next := n + uint64(b)<<shift
		if next < n {
			r.fail()
			return 0
		}
		n = next
		if b < 128 {
			return n
		}
	}
}

// next returns the next n bytes of the payload.
func (r *payloadReader) next(n uint64) []byte {
	if n > uint64(len(r.unread)) {
		r.fail()
		return nil
	}
	b := r.unread[:n:n]
	r.unread = r.unread[n:]
	return b
}

// text reads an untyped string: its length, then its bytes.
func (r *payloadReader) text() []byte { return r.next(r.varint()) }

func (r *payloadReader) value() (v value) {
	first := r.byte()
	v.kind = valueKind(first & 0x0f)
	switch v.kind {
	case kindNull:
	case kindBool:
		if first&trueFlag != 0 {
			v.number = 1
		}
	case kindInt32, kindUint32, kindInt64, kindUint64:
		v.number = int64(r.varint())
	case kindIPv4:
		v.bytes = r.next(4)
	case kindIPv6:
		v.bytes = r.next(16)
	case kindString, kindBinary:
		v.bytes = r.text()
	default:
		r.fail()
	}
	if r.bad {
		return value{}
	}
	return v
}

// text returns the value as a string. Null is "".
func (v *value) text() string {
	switch v.kind {
	case kindNull:
		return ""
	case kindBool:
		return strconv.FormatBool(v.number != 0)
	case kindIPv4, kindIPv6:
		addr, _ := netip.AddrFromSlice(v.bytes)
		return addr.Unmap().String()
	case kindString, kindBinary:
		return string(v.bytes)
	case kindUint64:
		return strconv.FormatUint(uint64(v.number), 10)
	}
	return strconv.FormatInt(v.number, 10)
}

// int returns the value as a number, and whether it is one. A decimal string is a number, because
// HAProxy's samples of headers are strings.
func (v *value) int() (int64, bool) {
	switch v.kind {
	case kindBool, kindInt32, kindUint32, kindInt64, kindUint64:
		return v.number, true
	case kindString:
		n, err := strconv.ParseInt(string(v.bytes), 10, 64)
		return n, err == nil
	}
	return 0, false
}

func appendVarint(b []byte, n uint64) []byte {
	if n < 240 {
		return append(b, byte(n))
	}
	b = append(b, byte(n)|240)
	for n = (n - 240) >> 4; n >= 128; n = (n - 128) >> 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

// appendText appends an untyped string.
func appendText(b []byte, s string) []byte {
	return append(appendVarint(b, uint64(len(s))), s...)
}

func appendString(b []byte, s string) []byte {
	return appendText(append(b, byte(kindString)), s)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, byte(kindBool)|trueFlag)
	}
	return append(b, byte(kindBool))
}

func appendUint32(b []byte, n uint32) []byte {
	return appendVarint(append(b, byte(kindUint32)), uint64(n))
}

func appendInt64(b []byte, n int64) []byte {
	return appendVarint(append(b, byte(kindInt64)), uint64(n))
}

// putLength sets the length at the beginning of the frame b.
func putLength(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize))
}
