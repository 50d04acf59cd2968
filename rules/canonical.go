package rules

import (
	"cmp"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
)

// A Canonicalizer finds the text under which instances count a key of one rule that
// another program wrote. It is not safe for concurrent use.
type Canonicalizer struct {
	rule   *Rule
	params Params // room
	// head is the text of the last canonical key up to its last value: a key that
	// begins with it, and goes on without a reserved byte, is canonical as well. Keys
	// of one shape follow each other in nearly all traffic, so that comparing is
	// cheaper than a table of known keys, which misses the processor's cache, and is
	// as good for keys that were never seen.
	head []byte
}

// NewCanonicalizer returns a Canonicalizer for the keys of r.
func NewCanonicalizer(r *Rule) *Canonicalizer { return &Canonicalizer{rule: r} }

// Append appends the text under which instances count a key that another program wrote
// as text: its parameters sorted and its escapes as [Params] writes them, cut to
// [MaxText] bytes. If text is that already it appends nothing, and changed is false.
//
// A text is canonical in nearly every case, and one pass over it shows that.
// These are left as they are:
//
//   - a text that was cut, since its hash is of what was cut off, too;
//   - a text whose parameters cannot be recognised: a route alone, a
//     name that a program made up;
//   - the names of counts that are no parameters', [base.TotalParams] among them: of these only the
//     route is looked at.
//
// It never changes a text that a guard counts, as then no guard would limit the key:
// unless that is the name of a resource, "why?b=1&a=2", under a rule for any route.
func (c *Canonicalizer) Append(dst, text []byte) (_ []byte, changed bool) {
	s := unsafe.String(unsafe.SliceData(text), len(text)) // kept until the parameters are reset
	if len(s) <= MaxText && (c.isAlike(s) || c.isCanonical(s) || base.IsCutKey(text)) {
		return dst, false
	}
	start := len(dst)
	dst = c.rule.appendCanonical(dst, s, &c.params, nil)
	if n := len(dst) - start; n > MaxText {
		dst = append(dst[:start], base.CutKey(dst[start:], MaxText)...)
	}
	if string(dst[start:]) == s {
		return dst[:start], false
	}
	return dst, true
}

// Head returns the beginning of the last text that was canonical, up to its last value: a text
// of at most [MaxText] bytes that begins with it, and goes on without a reserved byte, is
// canonical as well. It is empty while none is known, and valid until the next Append.
func (c *Canonicalizer) Head() []byte { return c.head }

// isAlike reports whether s is the last canonical key but for its last value.
func (c *Canonicalizer) isAlike(s string) bool {
	n := len(c.head)
	return n > 0 && len(s) >= n && s[:n] == string(c.head) && isUnreserved(s, n)
}

// isCanonical reports whether s is surely canonical, and keeps its head.
func (c *Canonicalizer) isCanonical(s string) bool {
	head, ok := isSurelyCanonical(s, c.rule.ParamsOnly)
	if head > 0 {
		c.head = append(c.head[:0], s[:head]...)
	}
	return ok
}

// appendCanonical appends s in canonical form, redacted unless x is nil.
func (r *Rule) appendCanonical(dst []byte, s string, p *Params, x *Redactor) []byte {
	route, params, hasParams := r.split(s)
	if r.ParamsOnly {
		dst = append(dst, route...)
	} else {
		dst = AppendRoute(dst, route)
	}
	if !hasParams {
		return dst
	}
	defer p.Reset()
	p.Reset()
	p.addWritten(params)
	if x != nil {
		p.Redact(x)
	}
	p.Sort()
	for i := range p.list {
		if i == 0 && !r.ParamsOnly {
			dst = append(dst, '?')
		}
		dst = appendNext(dst, &p.list[i], i)
	}
	return dst
}

// split parts the route of a key's text from its parameters. Where hasParams is
// false the text is all route. A route may hold a "?" of its own: in braces, behind an
// optional ":name", or in the name of a resource. Such a name is distinguished from parameters
// by the rule, or as not all of it is "name=value".
func (r *Rule) split(s string) (route, params string, hasParams bool) {
	at := -1
	switch match := &r.Match.Route; {
	case r.ParamsOnly:
		if strings.IndexByte(s, '=') < 0 || r.isReservedText(s) {
			return s, "", false
		}
		return "", s, true
	case match.isResource():
		if rest, ok := strings.CutPrefix(s, match.text); ok && strings.HasPrefix(rest, "?") {
			at = len(match.text)
		}
	case isRequestLine(s):
		at = pathEnd(s)
	default:
		if at = strings.LastIndexByte(s, '?'); at >= 0 && !areAssignments(s[at+1:]) {
			at = -1
		}
	}
	if at < 0 || r.isReservedText(s[at+1:]) {
		return s, "", false
	}
	return s[:at], s[at+1:], true
}

// isReservedText reports whether what stands in place of parameters is a name that
// senders of counts have for what no request can spell: a parameter has a "=".
func (r *Rule) isReservedText(params string) bool {
	return params == base.TotalParams && r.Overlaps() || base.IsReservedParams(params)
}

// areAssignments reports whether all of s is "name=value&…".
func areAssignments(s string) bool {
	for param := range strings.SplitSeq(s, "&") {
		if strings.IndexByte(param, '=') < 0 {
			return false
		}
	}
	return true
}

// isResource reports whether the route stands for the resource of its name.
func (r *Route) isResource() bool { return r.path == "" && !r.IsAny() }

// isRequestLine reports whether a text begins as "METHOD /path" or "METHOD host/path".
func isRequestLine(s string) bool {
	method, path, ok := strings.Cut(s, " ")
	slash, query := strings.IndexByte(path, '/'), strings.IndexByte(path, '?')
	return ok && isMethod(method) && slash >= 0 && (query < 0 || slash < query)
}

// pathEnd is where the "?" is that ends the path of a request line; -1: there is
// none.
func pathEnd(s string) int {
	depth, segment := 0, 0 // of braces; where the path's segment begins
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		case '/':
			segment = i + 1
		case '?':
			next := i + 1
			optional := s[segment] == ':' && (next == len(s) || s[next] == '/' || s[next] == '?')
			if depth == 0 && !optional {
				return i
			}
		}
	}
	return -1
}

// AppendRoute appends a route as keys write it. The escapes of a path, "/path" or
// "METHOD /path", are as [AppendPath] writes them, while bytes that AppendPath would
// escape stay: a pattern may have them. A pattern with braces, and the name of a
// resource, stay as they are.
func AppendRoute(dst []byte, route string) []byte {
	if strings.IndexByte(route, '%') < 0 || strings.IndexByte(route, '{') >= 0 || !strings.HasPrefix(route, "/") && !isRequestLine(route) {
		return append(dst, route...)
	}
	start := len(dst)
	for i := 0; i < len(route); i++ {
		c := route[i]
		if c == '%' {
			b, ok := unhex(route[i:])
			if !ok { // not escapes, then
				return append(dst[:start], route...)
			}
			i += 2
			if c = b; !unreserved[c] {
				dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
				continue
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// addWritten adds the parameters of a key's text, "[source:]name=value&…", decoded
// as those of a query, or of a path where their source is another.
func (p *Params) addWritten(s string) {
	for param := range strings.SplitSeq(s, "&") {
		if param == "" {
			continue
		}
		name, value, _ := strings.Cut(param, "=")
		source, decodeName, decode := Query, decodeForm, decodeForm
		if word, rest, ok := strings.Cut(name, ":"); ok && word != "" {
			if from, known := ParseSource(word); known {
				source, name = from, rest
			}
			if source != Query {
				decode, decodeName = decodePath, decodePath
			}
			if source == Header {
				decodeName = decodeHeader
			}
		}
		p.add(source, name, value, decodeName, decode)
	}
}

// isSurelyCanonical is true of nearly all texts that [Canonicalizer.Append] leaves as they
// are: a route without escapes, which may be missing, and behind the first "?"
// parameters as [Params] writes them. It takes one pass, 64 bytes at a time, of which it
// looks only at those that do not stand for themselves.
//
// head is where the last value begins, if any other of unreserved bytes would do: not of
// two parameters with one name, which are in the order of their values; 0: none would.
func isSurelyCanonical(s string, paramsOnly bool) (head int, ok bool) {
	inParams := paramsOnly
	var before, q written
	q.eq = -1
	for base := 0; base < len(s); base += 64 {
		for marks := separators(s[base:min(base+64, len(s))]); marks != 0; marks &= marks - 1 {
			i := base + bits.TrailingZeros64(marks)
			c := s[i]
			if !inParams {
				if c == '?' {
					inParams, q.start, q.name = true, i+1, i+1
				} else if c == '%' {
					return 0, false
				}
				continue
			}
			switch c {
			case '=':
				if q.eq >= 0 || q.name > q.start && s[q.start:q.name] == "header:" && hasUpper(s[q.name:i]) {
					return 0, false
				}
				q.eq = i
			case '&':
				if q.end = i; q.eq < 0 || before.end > 0 && q.isBefore(&before, s) {
					return 0, false
				}
				before, q = q, written{start: i + 1, name: i + 1, eq: -1}
			case '%':
				if !isCanonicalEscape(s[i:]) {
					return 0, false
				}
			case ':':
				if q.eq >= 0 || q.name > q.start || !isWrittenSource(s[q.start:i]) {
					return 0, false
				}
				q.name = i + 1
			default:
				return 0, false
			}
		}
	}
	if !inParams {
		return 0, true
	}
	if q.end = len(s); q.eq < 0 || before.end > 0 && q.isBefore(&before, s) {
		return 0, false
	}
	if before.end == 0 || s[q.name:q.eq] != s[before.name:before.eq] {
		head = q.eq + 1
	}
	return head, true
}

// written is where in a canonical text a parameter is: where it starts, where its
// name does, where the name ends, and where the value ends.
type written struct{ start, name, eq, end int }

// isBefore reports whether q comes before p in the order of [Params.Sort]. The first
// byte of a name nearly always tells.
func (q *written) isBefore(p *written, s string) bool {
	if x, y := s[q.name], s[p.name]; x != y && unreserved[x] && unreserved[y] {
		return x < y
	}
	c := compareEscaped(s[q.name:q.eq], s[p.name:p.eq])
	if c == 0 {
		c = compareEscaped(s[q.eq:q.end], s[p.eq:p.end])
	}
	if c == 0 {
		c = cmp.Compare(q.source(s), p.source(s))
	}
	return c < 0
}

func (q *written) source(s string) Source {
	source, _ := ParseSource(strings.TrimSuffix(s[q.start:q.name], ":"))
	return source
}

func isCanonicalEscape(s string) bool {
	b, ok := unhex(s)
	return ok && !unreserved[b] && s[1] < 'a' && s[2] < 'a'
}

// hasUpper reports whether s has a capital of ASCII that is no digit of an escape.
func hasUpper(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%':
			i += 2
		case 'A' <= c && c <= 'Z':
			return true
		}
	}
	return false
}

// isWrittenSource reports whether word is a source that stands before a name.
func isWrittenSource(word string) bool {
	source, ok := ParseSource(word)
	return ok && source != Query
}

// compareEscaped compares the bytes that two canonical texts stand for. Where they
// differ within an escape, its digits are in the order of what they stand for.
func compareEscaped(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x == '%' {
			x, _ = unhex(a[i:])
		}
		if y == '%' {
			y, _ = unhex(b[i:])
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}
