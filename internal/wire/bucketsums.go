package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/hotparam/hotparam/rules"
)

// Bucket sums split the loose counts of [Sums] by a hash of their keys. So counts that other keys
// lost hardly raise the bound for a key without an account. They cover the rules with a jump,
// since the baseline of a rising key is from a time when the key had no account. They are stated
// at most once a flush, and only between two processes with the same rules.

// Buckets is the number of bucket sums.
const Buckets = 128

// bucketBits is the number of low bits of a sum that are sent.
const bucketBits = 18

// BucketModulus bounds the difference of two bucket sums that a receiver can recognise.
const BucketModulus = 1 << bucketBits

// BucketsLeap is the number of statements that a sender skips when its rules change. A receiver
// does not compare statements that are at least this far apart.
const BucketsLeap = 1 << 16

// maxBuckets is the maximum number of bytes of bucket sums in a [Meta].
const maxBuckets = 8 + 1 + 16 + 1 + 3*Buckets

const bucketDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// JumpsMark identifies the rules whose loose counts bucket sums cover: those with a jump. It
// is 0 if there are none.
func JumpsMark(ruleset *rules.Rules) uint32 {
	_, mark := markOf(ruleset, (*rules.Rule).HasJump, nil)
	return mark
}

const (
	bucketFactor = 0x9e3779b97f4a7c15
	bucketSalt   = 0xbf58476d1ce4e5b9
)

// BucketHash returns the hash of a key's text that determines its bucket. Unlike
// [rules.Hash] it is the same in all processes.
func BucketHash(text []byte) uint64 {
	h, tail := uint64(len(text))*bucketFactor, text
	for ; len(tail) > 16; tail = tail[16:] {
		h = fold(binary.LittleEndian.Uint64(tail)^bucketSalt, binary.LittleEndian.Uint64(tail[8:])^h)
	}
	// Some of the last bytes are hashed twice, since a loop over the remaining ones takes longer.
	switch n := len(text); {
	case n >= 16:
		return fold(binary.LittleEndian.Uint64(text[n-16:])^bucketSalt, binary.LittleEndian.Uint64(text[n-8:])^h)
	case n >= 8:
		return fold(binary.LittleEndian.Uint64(text)^bucketSalt, binary.LittleEndian.Uint64(text[n-8:])^h)
	}
	word := uint64(0)
	for _, c := range text {
		word = word<<8 | uint64(c)
	}
	return fold(word^bucketSalt, h)
}

// fold multiplies two words and mixes the halves of the product, as wyhash does.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// BucketOf returns the bucket of a key with this hash, for a sender with this incarnation.
// Keys that share a bucket of one sender do not share one of the next, except by chance.
func BucketOf(hash, incarnation uint64) int {
	return int(fold(hash^incarnation, bucketFactor) >> 32 % Buckets)
}

// AppendBuckets appends a packet's statement about the bucket sums: the mark, and the number of
// the sender's statements of the sums, including this one if sums is not nil. The low bits of each
// sum are sent, in three characters. The number shows receivers between which statements a
// packet was made, whatever the order of arrival.
func AppendBuckets(dst []byte, mark uint32, number uint64, sums *[Buckets]uint32) []byte {
	dst = append(strconv.AppendUint(dst, uint64(mark), 16), '.')
	dst = strconv.AppendUint(dst, number, 16)
	if sums == nil {
		return dst
	}
	dst = append(dst, '.')
	for _, n := range sums {
		dst = append(dst, bucketDigits[n>>12&63], bucketDigits[n>>6&63], bucketDigits[n&63])
	}
	return dst
}

// ParseBuckets reads the text of [AppendBuckets] with this mark. It sets the low bits of sums,
// unless sums is nil, and returns stated=true if the text has the sums. ok is false for any
// other text, but if sums is nil the sums in the text are not checked.
func ParseBuckets(sums *[Buckets]uint32, text []byte, mark uint32) (number uint64, stated, ok bool) {
	got, text, more, ok := leadingHex(text)
	if !ok || !more || got != uint64(mark) {
		return 0, false, false
	}
	number, text, stated, ok = leadingHex(text)
	if !stated || !ok || sums == nil {
		return number, stated, ok
	}
	if len(text) != 3*Buckets {
		return 0, false, false
	}
	for i := range sums {
		sums[i] = 0
		for _, c := range text[3*i : 3*i+3] {
			digit := bucketValues[c]
			if digit < 0 {
				return 0, false, false
			}
			sums[i] = sums[i]<<6 | uint32(digit)
		}
	}
	return number, true, true
}

// bucketValues has the values of the digits, and -1 for other bytes.
var bucketValues = func() (values [256]int8) {
	for i := range values {
		values[i] = int8(bytes.IndexByte([]byte(bucketDigits), byte(i)))
	}
	return values
}()
