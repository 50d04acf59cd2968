package keytext

import (
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// A value can hold secrets that the parameter's name does not reveal: a URL with a user's
// password, or parameters within a value ("next=/cb?token=…", "a;password=…"), at any depth of
// escaping. Keys have "~" in place of each, so that the value still makes a key and evades no
// limit.

// mask replaces a secret within a value or a path in keys.
const mask = "~"

// maxEscapes is how many times a value is decoded in the search for secrets.
const maxEscapes = 3

// Mask replaces the secrets within the values that were added since the last call. It comes after
// [Params.Redact] and before Sort. [Params.At] still returns the original values. Parameters with
// secret names make no key and are not changed. Mask allocates only if there is a secret.
func (p *Params) Mask(secrets *rules.Secrets) {
	for i := range p.list {
		q := &p.list[i]
		if q.marks&(clean|masked|redacted) != 0 {
			continue
		}
		q.marks |= masked
		value := q.value()
		if !mayHoldSecret(value) || secrets.Hides(q.name()) {
			continue
		}
		text, found := maskValue(secrets, value)
		if !found {
			continue
		}
		start := len(p.decoded)
		p.decoded = append(append(append(p.decoded, q.name()...), '='), text...)
		p.standFor(q, start, value)
	}
}

// mayHoldSecret reports whether a value may hold a secret.
func mayHoldSecret(value string) bool {
	return strings.IndexByte(value, '=') >= 0 || strings.IndexByte(value, '@') >= 0 || strings.IndexByte(value, '%') >= 0
}

// maskValue returns a decoded value with its secrets replaced, and decoded as often as it took to find
// them. found reports whether there was one.
func maskValue(s *rules.Secrets, value string) (masked string, found bool) {
	for range maxEscapes {
		shown, ok := maskOnce(s, value)
		value, found = shown, found || ok
		if strings.IndexByte(value, '%') < 0 {
			break
		}
		decoded := string(base.AppendDecoded(nil, value, false))
		if decoded == value {
			break
		}
		value = decoded
	}
	return value, found
}

// maskOnce replaces the secrets that value holds without further escapes.
func maskOnce(s *rules.Secrets, value string) (masked string, found bool) {
	var b []byte
	kept := 0 // of value, in b
	replace := func(from, to int) {
		b = append(append(b, value[kept:from]...), mask...)
		kept = to
	}
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '=':
			name := value[nameBefore(value, i):i]
			end := i + 1
			for end < len(value) && !endsValue(value[end]) {
				end++
			}
			if end > i+1 && name != "" && s.Hides(name) {
				replace(i+1, end)
				i = end - 1
			}
		case strings.HasPrefix(value[i:], "://"):
			authority := value[i+len("://"):]
			if end := strings.IndexAny(authority, "/?# \t\r\n\"'<>\\"); end >= 0 {
				authority = authority[:end]
			}
			if userEnd := strings.LastIndexByte(authority, '@'); userEnd > 0 {
				replace(i+len("://"), i+len("://")+userEnd)
				i += len("://") + userEnd
			}
		}
	}
	if b == nil {
		return value, false
	}
	return string(append(b, value[kept:]...)), true
}

// nameBefore returns the start of the name that ends before end.
func nameBefore(s string, end int) int {
	start := end
	for start > 0 && (base.Unreserved[s[start-1]] && s[start-1] != '~' || s[start-1] == '[' || s[start-1] == ']') {
		start--
	}
	return start
}

// endsValue reports whether a byte ends a value within a value.
func endsValue(c byte) bool { return strings.IndexByte("&;,#|\"'<>(){} \t\r\n\\", c) >= 0 }

// MaskPath replaces the parts of path that look secret: the value of "/name=value" and
// ";name=value", and the segment after one that is a secret's name, "/reset-token/…". It changes
// path in place and returns it; [base.AppendPath] has written path at the end of a key. A rule can name
// a route to keep its path unchanged.
func MaskPath(s *rules.Secrets, path []byte) []byte {
	out, after := 0, false // after: the segment before is a secret's name
	for from := 0; from <= len(path); {
		to := from
		for to < len(path) && path[to] != '/' {
			to++
		}
		segment := path[from:to]
		if after && len(segment) > 0 {
			out += copy(path[out:], mask)
			after = false
		} else {
			after = namesSecret(s, segment)
			out += maskMatrix(s, path[out:out], segment)
		}
		if to < len(path) {
			path[out] = '/'
			out++
		}
		from = to + 1
	}
	return path[:out]
}

// namesSecret reports whether a segment is the name of a secret that the next segment is likely
// to hold. "/auth/login" and "/code/…" are ordinary paths.
func namesSecret(s *rules.Secrets, segment []byte) bool {
	name := unsafe.String(unsafe.SliceData(segment), len(segment))
	return s.Hides(name) && strings.IndexByte(name, '=') < 0 && !strings.EqualFold(name, "auth") && !strings.EqualFold(name, "code")
}

// maskMatrix appends a segment to dst without the values of parameters that look secret, and
// returns the number of bytes appended. dst is an earlier part of the same path.
func maskMatrix(s *rules.Secrets, dst, segment []byte) int {
	n := len(dst)
	for len(segment) > 0 {
		end := 0
		for end < len(segment) && segment[end] != ';' {
			end++
		}
		part := segment[:end]
		if eq := strings.IndexByte(unsafe.String(unsafe.SliceData(part), len(part)), '='); eq > 0 && eq+1 < len(part) &&
			s.Hides(unsafe.String(unsafe.SliceData(part), eq)) {
			dst = append(append(dst, part[:eq+1]...), mask...)
		} else {
			dst = append(dst, part...)
		}
		if end < len(segment) {
			dst = append(dst, ';')
			end++
		}
		segment = segment[end:]
	}
	return len(dst) - n
}
