package baseline

import (
	"encoding/binary"
	"errors"
)

// The bytes of an hour, all numbers little-endian: the version 1; the number of the hour, 8
// bytes; the number of rules, 2. Then each rule: its hash, 8; the seconds counted, 2; the
// floor, 8; the number of keys, 4; their hashes ascending, 8 each; their counts in the same
// order, 2 each.
const (
	version    = 1
	headSize   = 1 + 8 + 2
	ruleSize   = 8 + 2 + 8 + 4
	keySize    = 8 + 2
	maxRules   = 1024
	maxEncoded = 1 << 20
)

var errEncoding = errors.New("not an hour of a baseline, or of another version")

// Append appends the bytes of the hour to dst.
func (h *Hour) Append(dst []byte) []byte {
	order := binary.LittleEndian
	dst = order.AppendUint64(append(dst, version), uint64(h.Number))
	dst = order.AppendUint16(dst, uint16(len(h.Rules)))
	for i := range h.Rules {
		r := &h.Rules[i]
		dst = order.AppendUint64(dst, r.Rule)
		dst = order.AppendUint16(dst, uint16(r.Seconds))
		dst = order.AppendUint64(dst, uint64(r.Floor))
		dst = order.AppendUint32(dst, uint32(len(r.hashes)))
		for _, hash := range r.hashes {
			dst = order.AppendUint64(dst, hash)
		}
		for _, n := range r.counts {
			dst = order.AppendUint16(dst, uint16(n))
		}
	}
	return dst
}

// Parse reads the output of [Hour.Append].
func Parse(b []byte) (*Hour, error) {
	order := binary.LittleEndian
	if len(b) < headSize || len(b) > maxEncoded || b[0] != version {
		return nil, errEncoding
	}
	h := &Hour{Number: int64(order.Uint64(b[1:]))}
	rules := int(order.Uint16(b[9:]))
	if rules > maxRules {
		return nil, errEncoding
	}
	b = b[headSize:]
	for range rules {
		if len(b) < ruleSize {
			return nil, errEncoding
		}
		r := RuleHour{Rule: order.Uint64(b), Seconds: int64(order.Uint16(b[8:])), Floor: int64(order.Uint64(b[10:]))}
		n := int(order.Uint32(b[18:]))
		b = b[ruleSize:]
		if r.Seconds < 1 || r.Seconds > hourSeconds || r.Floor < 1 || r.Floor > maxQuantity || n < 0 || n > len(b)/keySize {
			return nil, errEncoding
		}
		r.hashes, r.counts = make([]uint64, n), make([]quantity, n)
		for i := range n {
			r.hashes[i] = order.Uint64(b[8*i:])
			r.counts[i] = quantity(order.Uint16(b[8*n+2*i:]))
			if i > 0 && r.hashes[i] <= r.hashes[i-1] {
				return nil, errEncoding
			}
		}
		b = b[n*keySize:]
		h.Rules = append(h.Rules, r)
	}
	if len(b) > 0 {
		return nil, errEncoding
	}
	return h, nil
}
