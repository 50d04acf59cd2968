package rules

import (
	"math/bits"

	"github.com/hotparam/hotparam/internal/base"
)

// maxPlain is how many parameters a query can have that AppendPlain writes, and
// maxPlainQuery how many bytes.
const (
	maxPlain      = 8
	maxPlainQuery = 64
)

// span is a parameter as it stands in a query: raw[start:end], its name up to eq.
type span struct {
	start, eq, end int8
	plain          bool // its value stands for itself
}

// AppendPlain appends "name=value&…" of a raw query's parameters in canonical
// order, and returns how many it appended: of those that names name, or, where names
// is empty, of all but the hidden ones that secrets hide. It is what [Params] makes of
// the query, in one pass and without a Params, where no name has to be decoded, none of
// names comes twice, no value that has to be is of a name that comes twice, and the query
// has at most eight parameters and 64 bytes; else ok is false, and nothing is appended. It
// does not grow dst for values that get longer by being escaped, but is not ok. Where dst
// has room for the query it does not allocate. It is safe for concurrent use.
func AppendPlain(dst []byte, raw string, names []Param, secrets *Secrets) (text []byte, n, hidden int, ok bool) {
	if len(raw) > maxPlainQuery {
		return dst, 0, 0, false
	}
	var list [maxPlain]span
	start, escaped := len(dst), 0
	marks := separators(raw)
	for i := 0; i < len(raw); {
		eq, end, plain := bits.TrailingZeros64(marks), len(raw), true
		if marks == 0 || raw[eq] != '=' {
			return dst, 0, 0, false
		}
		for marks &= marks - 1; marks != 0; marks &= marks - 1 {
			at := bits.TrailingZeros64(marks)
			if raw[at] == '&' {
				end = at
				marks &= marks - 1
				break
			}
			if raw[at] == '=' || raw[at] == '@' || raw[at] == '%' && hidesByte(raw[at+1:]) {
				return dst, 0, 0, false // the value may hold a secret: see Params.Mask
			}
			escaped++
			plain = false
		}
		q := span{int8(i), int8(eq), int8(end), plain}
		i = end + 1
		if name := raw[q.start:eq]; len(names) == 0 {
			if secrets.Hides(name) {
				hidden++
				continue
			}
		} else if !isNamed(name, names) {
			continue
		}
		if n == maxPlain {
			return dst, 0, 0, false
		}
		at := n
		for ; at > 0 && q.before(list[at-1], raw); at-- {
			list[at] = list[at-1]
		}
		list[at] = q
		n++
	}
	if escaped > 0 && len(raw)+2*escaped > cap(dst)-start {
		return dst, 0, 0, false
	}
	for i, q := range list[:n] {
		if i > 0 {
			if p := list[i-1]; (len(names) > 0 || !q.plain || !p.plain) && q.sameName(p, raw) {
				return dst[:start], 0, 0, false
			}
			dst = append(dst, '&')
		}
		if q.plain {
			dst = append(dst, raw[q.start:q.end]...)
			continue
		}
		dst = append(dst, raw[q.start:q.eq+1]...)
		dst = appendRewritten(dst, raw[q.eq+1:q.end])
	}
	return dst, n, hidden, true
}

// appendRewritten appends a form's value in canonical form: appendEscaped of what
// appendDecoded makes of it. dst has room for two bytes more for each byte of the value that
// does not stand for itself.
func appendRewritten(dst []byte, value string) []byte {
	to, n := dst[:cap(dst)], len(dst)
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if b, ok := unhex(value[i:]); ok {
				c = b
				i += 2
			}
		}
		if unreserved[c] {
			to[n] = c
			n++
			continue
		}
		to[n], to[n+1], to[n+2] = '%', upperHex[c>>4], upperHex[c&15]
		n += 3
	}
	return dst[:n]
}

// isNamed reports whether the query's parameter of this name is among names.
func isNamed(name string, names []Param) bool {
	for i := range names {
		if names[i].Name == name && names[i].Source == Query {
			return true
		}
	}
	return false
}

func (q span) sameName(p span, raw string) bool {
	return raw[q.start:q.eq] == raw[p.start:p.eq]
}

// before decides by the first byte where it can: see less.
func (q span) before(p span, raw string) bool {
	if x, y := raw[q.start], raw[p.start]; x != y && x != '=' && y != '=' {
		return x < y
	}
	a, b := raw[q.start:q.eq], raw[p.start:p.eq]
	if a == b {
		a, b = raw[q.eq:q.end], raw[p.eq:p.end]
	}
	return a < b
}

// separators returns, as bits, which bytes of s do not stand for themselves. s has
// at most 64 bytes; eight are looked at at a time, since a loop over single bytes
// costs a wrong guess of the processor's wherever a value ends.
func separators(s string) (marks uint64) {
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		marks |= reserved(word(s[i:])) << i
	}
	if i == len(s) {
		return marks
	}
	var last uint64
	if len(s) >= 8 {
		last = word(s[len(s)-8:]) >> (8 * (8 - len(s)&7))
	} else {
		for j := len(s) - 1; j >= 0; j-- {
			last = last<<8 | uint64(s[j])
		}
	}
	return marks | (reserved(last)&(1<<(len(s)-i)-1))<<i
}

// isUnreserved reports whether no byte of s, from start on, is reserved.
func isUnreserved(s string, start int) bool {
	for ; len(s)-start >= 8; start += 8 {
		if reserved(word(s[start:])) != 0 {
			return false
		}
	}
	n := len(s) - start
	if n > 0 && len(s) >= 8 { // the last eight bytes, less those before start
		return reserved(word(s[len(s)-8:]))>>(8-n) == 0
	}
	return separators(s[start:]) == 0
}

// word is the first eight bytes of s, the first one lowest.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// reserved returns, as eight bits, which of eight bytes are not unreserved.
func reserved(w uint64) uint64 { return base.ReservedBytes(w) >> 7 * 0x0102040810204080 >> 56 }

// hidesByte reports whether the digits of an escape stand for "=", "@" or "%".
func hidesByte(digits string) bool {
	if len(digits) < 2 {
		return false
	}
	switch digits[:2] {
	case "3D", "3d", "40", "25":
		return true
	}
	return false
}
