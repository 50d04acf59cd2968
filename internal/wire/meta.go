package wire

import (
	"bytes"
	"math"
	"strconv"
)

// metaName begins a meta line. It has no marker, so a listener that does not know it treats the
// line as some other counter.
const metaName = "hotparam.meta:1|c|#"

// Meta is the content of the first line of a packet, which describes the lines after it.
type Meta struct {
	// Instance names the sender: [A-Za-z0-9_.-]+. Incarnation is different after each start of
	// the sender. Seq numbers its packets from 1 without gaps.
	Instance    []byte
	Incarnation uint64
	Seq         uint64
	// Start is the earliest possible time of the counts, in nanoseconds since the Unix epoch:
	// the flush's, or earlier for counts that were held back.
	Start int64
	// Held is h: each key's unsent count at this instance is below it. It is 1 when everything
	// is sent.
	Held int64
	// Unsent is an upper bound on the counts of any one key that this instance has dropped
	// since its last flush and will never send. It is set in a packet whose Start is the
	// flush's.
	Unsent int64
	// Aged is the sum, over all keys, of the counts that the instance has given up since its
	// last flush because they were held back for longer than the window. It is a statistic and
	// not a bound, and is left out when 0.
	Aged int64
	// Sent is the time when the packet was made, by the sender's clock, in nanoseconds since
	// the Unix epoch. Zero means unknown.
	Sent int64
	// Groups is the [GroupsMark] of the rules for whose groups the sender reports held-back
	// counts. Zero means none.
	Groups uint32
	// Rules are the sums of each rule before this packet, in the form of [AppendRuleSums]; a
	// view into the line. Empty means unknown.
	Rules []byte
	// Buckets is the packet's statement about the bucket sums before it, in the form of
	// [AppendBuckets]; a view into the line. Empty means that there is none.
	Buckets []byte
	// Sums are the sender's sums before this packet, if it reports them.
	Sums Sums
}

// Sums are the sums over all packets of one incarnation of a sender, to one receiver, before the
// packet that carries them. So the amount between two packets is known exactly, whatever was
// lost. Earlier versions of a sender report none, and earlier readers ignore them.
type Sums struct {
	Stated bool // whether the sender reports them
	// Booked is the sum of the counts in lines with an [Account], Loose of all other counts.
	Booked, Loose uint64
	// Opened is the number of accounts that the sender has opened. Shed counts the accounts
	// that it could not keep for [AccountLife] as promised.
	Opened, Shed uint64
	// Parts is the number of lines with an account whose counts were held back, and so can be
	// from before their flush.
	Parts uint64
	// Age is the time by which this packet's Start precedes its flush's, because its counts
	// were held back. Since is the time from the start of the previous packet's flush to that
	// of this one. Both are in nanoseconds. They show the time of a lost packet.
	Age, Since int64
	// HeldBack is the sum of the counts in held-back lines, which the other sums do not include.
	HeldBack uint64
}

// AppendMeta appends the meta line without a newline, at most [MaxMeta] bytes.
func AppendMeta(dst []byte, m Meta) []byte {
	dst = append(append(dst, metaName+"v:1,i:"...), m.Instance...)
	dst = strconv.AppendUint(append(dst, ",e:"...), m.Incarnation, 16)
	dst = strconv.AppendUint(append(dst, ",s:"...), m.Seq, 10)
	dst = strconv.AppendInt(append(dst, ",t:"...), m.Start, 10)
	dst = strconv.AppendInt(append(dst, ",h:"...), m.Held, 10)
	dst = strconv.AppendInt(append(dst, ",u:"...), m.Unsent, 10)
	if m.Aged > 0 {
		dst = strconv.AppendInt(append(dst, ",a:"...), m.Aged, 10)
	}
	if m.Sent > 0 {
		dst = strconv.AppendInt(append(dst, ",w:"...), m.Sent, 10)
	}
	if m.Groups != 0 {
		dst = strconv.AppendUint(append(dst, ",g:"...), uint64(m.Groups), 16)
	}
	if m.Sums.Stated {
		dst = m.Sums.append(append(dst, ",b:"...))
	}
	if len(m.Rules) > 0 {
		dst = append(append(dst, ",r:"...), m.Rules...)
	}
	if len(m.Buckets) > 0 {
		dst = append(append(dst, ",j:"...), m.Buckets...)
	}
	return dst
}

// append appends the sums as hexadecimal numbers separated by dots.
func (s *Sums) append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, s.Booked, 16)
	for _, n := range [...]uint64{s.Loose, s.Opened, s.Shed, s.Parts} {
		dst = strconv.AppendUint(append(dst, '.'), n, 16)
	}
	dst = strconv.AppendInt(append(dst, '.'), s.Age, 16)
	dst = strconv.AppendInt(append(dst, '.'), s.Since, 16)
	if s.HeldBack > 0 {
		dst = strconv.AppendUint(append(dst, '.'), s.HeldBack, 16)
	}
	return dst
}

// parse reads the text of append. It ignores further numbers.
func (s *Sums) parse(text []byte) (ok bool) {
	more := false
	for _, n := range [...]*uint64{&s.Booked, &s.Loose, &s.Opened, &s.Shed, &s.Parts} {
		if *n, text, more, ok = leadingHex(text); !ok || !more {
			return false
		}
	}
	for i, n := range [...]*int64{&s.Age, &s.Since} {
		part, tail, more := bytes.Cut(text, []byte{'.'})
		var err error
		if *n, err = strconv.ParseInt(string(part), 16, 64); err != nil || !more && i == 0 {
			return false
		}
		text = tail
	}
	if len(text) > 0 {
		if s.HeldBack, _, _, ok = leadingHex(text); !ok {
			return false
		}
	}
	s.Stated = true
	return true
}

// Bounds of a meta line.
const (
	MaxInstance = 64
	// Aged and Sent are never negative.
	MaxMeta = len(metaName) + len("v:1,i:,e:,s:,t:,h:,u:,a:,w:,g:,b:.......,r:,j:") + maxRuleSums + maxBuckets + MaxInstance + 16 + 20 + 3*20 + 2*19 + 8 + 6*16 + 2*17
)

// IsMeta reports whether a line is a meta line.
func IsMeta(line []byte) bool {
	return len(line) > len(metaName) && string(line[:len(metaName)]) == metaName
}

// ParseMeta reads a meta line. It skips fields that it does not know. A missing field, or
// another version, is [ErrMalformed].
func ParseMeta(line []byte) (Meta, error) {
	if !IsMeta(line) {
		return Meta{}, ErrMalformed
	}
	var m Meta
	var seen fieldSet
	ok := true
	for field := range bytes.SplitSeq(line[len(metaName):], []byte{','}) {
		if len(field) >= 3 && field[1] == ':' {
			ok = m.setField(field[0], field[2:]) && ok
			seen.add(field[0])
		}
	}
	if !ok || !seen.has("viesthu") || m.Seq == 0 || m.Held < 1 {
		return Meta{}, ErrMalformed
	}
	return m, nil
}

// setField sets the field with this letter. It ignores letters that it does not know.
func (m *Meta) setField(letter byte, value []byte) (ok bool) {
	ok = true
	switch letter {
	case 'v':
		ok = string(value) == "1"
	case 'i':
		m.Instance, ok = value, ValidInstance(value)
	case 'e':
		m.Incarnation, ok = parseHex(value)
	case 's':
		m.Seq, ok = parseUint(value)
	case 't':
		m.Start, ok = parseInt(value)
	case 'h':
		m.Held, ok = parseInt(value)
	case 'u':
		m.Unsent, ok = parseInt(value)
	case 'a':
		m.Aged, ok = parseInt(value)
	case 'w':
		m.Sent, ok = parseInt(value)
	case 'b':
		ok = m.Sums.parse(value)
	case 'r':
		m.Rules = value
	case 'j':
		m.Buckets = value
	case 'g':
		var n uint64
		n, ok = parseHex(value)
		m.Groups, ok = uint32(n), ok && n <= math.MaxUint32
	}
	return ok
}

// fieldSet is a set of letters from a to z.
type fieldSet uint32

func (s *fieldSet) add(letter byte) {
	if 'a' <= letter && letter <= 'z' {
		*s |= 1 << (letter - 'a')
	}
}

// has reports whether the set has all of these letters.
func (s fieldSet) has(letters string) bool {
	var all fieldSet
	for i := range len(letters) {
		all.add(letters[i])
	}
	return s&all == all
}

// ValidInstance reports whether s can name an instance: [A-Za-z0-9_.-]+, at most
// [MaxInstance] bytes.
func ValidInstance[T string | []byte](s T) bool {
	if len(s) == 0 || len(s) > MaxInstance {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}
