package keytext

import (
	"math/bits"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// Bounds of the queries that AppendPlain writes, in parameters and in bytes.
const (
	maxPlain      = 8
	maxPlainQuery = 64
)

// span locates a parameter in a query: it is raw[start:end], and its name ends at eq.
type span struct {
	start, eq, end int8
	plain          bool // whether the value has unreserved bytes alone
}

// AppendPlain appends "name=value&…" of a raw query's parameters in canonical order, and returns
// how many it appended. It takes those whose name is among names; with empty names it takes all
// that secrets do not hide, and counts the hidden ones. The text is the same as that of [Params],
// but it takes one pass and needs no Params.
//
// If ok is false, nothing is appended. That is so if the query has more than eight parameters or
// 64 bytes, if a name needs decoding or has no "=", or if a value may hold a secret. It is also so if one of
// names comes twice, or if a name comes twice and one of its values needs decoding. AppendPlain
// does not grow dst for values that escaping makes longer, but returns false. If dst has room for
// the query it does not allocate. It is safe for concurrent use.
func AppendPlain(dst []byte, raw string, names []rules.Param, secrets *rules.Secrets) (text []byte, n, hidden int, ok bool) {
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
			pos := bits.TrailingZeros64(marks)
			if raw[pos] == '&' {
				end = pos
				marks &= marks - 1
				break
			}
			if raw[pos] == '=' || raw[pos] == '@' || raw[pos] == '%' && hidesByte(raw[pos+1:]) {
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
		j := n
		for ; j > 0 && q.before(list[j-1], raw); j-- {
			list[j] = list[j-1]
		}
		list[j] = q
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

// appendRewritten appends a form's value in canonical form, as AppendDecoded and then
// AppendEscaped would. dst has room for two more bytes for each byte of the value that is not
// unreserved.
func appendRewritten(dst []byte, value string) []byte {
	to, n := dst[:cap(dst)], len(dst)
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if b, ok := base.Unhex(value[i:]); ok {
				c = b
				i += 2
			}
		}
		if base.Unreserved[c] {
			to[n] = c
			n++
			continue
		}
		to[n], to[n+1], to[n+2] = '%', base.UpperHex[c>>4], base.UpperHex[c&15]
		n += 3
	}
	return dst[:n]
}

// isNamed reports whether the query's parameter with this name is among names.
func isNamed(name string, names []rules.Param) bool {
	for i := range names {
		if names[i].Name == name && names[i].Source == rules.Query {
			return true
		}
	}
	return false
}

func (q span) sameName(p span, raw string) bool {
	return raw[q.start:q.eq] == raw[p.start:p.eq]
}

// before compares the first bytes of the names if they decide: see less.
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

// separators returns, as bits, the bytes of s that are not unreserved. s has at most 64 bytes.
// Eight are examined at a time, since a loop over single bytes costs a branch misprediction at
// the end of each value.
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

// word returns the first eight bytes of s as a number, the first byte lowest.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// reserved returns, as eight bits, the bytes of w that are not unreserved.
func reserved(w uint64) uint64 { return base.ReservedBytes(w) >> 7 * 0x0102040810204080 >> 56 }

// hidesByte reports whether the digits of an escape encode "=", "@" or "%".
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
