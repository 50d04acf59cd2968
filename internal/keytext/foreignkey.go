package keytext

import (
	"cmp"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// A Canonicalizer rewrites keys of one rule that another program wrote to the text under which
// instances count them. It is not safe for concurrent use.
type Canonicalizer struct {
	rule   *rules.Rule
	params Params // scratch space
	// head is the text of the last canonical key up to its last value. A key is canonical as well
	// if it begins with head and has no reserved byte after it. In nearly all traffic, keys of
	// one shape follow each other. Comparing with head is cheaper than a table of known keys, which
	// misses the processor's cache. It also works for keys that were never seen.
	head []byte
}

// NewCanonicalizer returns a Canonicalizer for the keys of r.
func NewCanonicalizer(r *rules.Rule) *Canonicalizer { return &Canonicalizer{rule: r} }

// Append appends the canonical form of a key that another program wrote as text: the form under
// which instances count it. Its parameters are sorted, its escapes are as [Params] writes them,
// and it is cut to [rules.MaxText] bytes. If text is canonical already, Append appends nothing and
// changed is false.
//
// Nearly every text is canonical, and one pass over it shows that. Append does not change:
//
//   - a text that was cut, since its hash covers the part that was cut off;
//   - a text whose parameters cannot be recognised: a route alone, or a name that a program made
//     up;
//   - the names of counts that belong to no parameters, such as [base.TotalParams]: only their
//     route is rewritten.
//
// It never changes a text that a guard counts, since then no guard would limit the key. The
// exception is a resource whose own name looks like parameters, "why?b=1&a=2", under a rule for
// any route.
func (c *Canonicalizer) Append(dst, text []byte) (_ []byte, changed bool) {
	s := unsafe.String(unsafe.SliceData(text), len(text)) // valid until the parameters are reset
	if len(s) <= rules.MaxText && (c.isAlike(s) || c.isCanonical(s) || base.IsCutKey(text)) {
		return dst, false
	}
	start := len(dst)
	dst = AppendCanonical(dst, c.rule, s, &c.params, nil)
	if n := len(dst) - start; n > rules.MaxText {
		dst = append(dst[:start], base.CutKey(dst[start:], rules.MaxText)...)
	}
	if string(dst[start:]) == s {
		return dst[:start], false
	}
	return dst, true
}

// Head returns the beginning of the last text that was canonical, up to its last value. Another
// text of at most [rules.MaxText] bytes is canonical as well if it begins with Head and has no reserved
// byte after it. Head is empty while none is known, and valid until the next Append.
func (c *Canonicalizer) Head() []byte { return c.head }

// isAlike reports whether s differs from the last canonical key in its last value at most.
func (c *Canonicalizer) isAlike(s string) bool {
	n := len(c.head)
	return n > 0 && len(s) >= n && s[:n] == string(c.head) && isUnreserved(s, n)
}

// isCanonical reports whether s is certainly canonical, and keeps its head.
func (c *Canonicalizer) isCanonical(s string) bool {
	head, ok := isSurelyCanonical(s, c.rule.ParamsOnly)
	if head > 0 {
		c.head = append(c.head[:0], s[:head]...)
	}
	return ok
}

// AppendCanonical appends the text of a key of the rule as guards count it: in canonical form and,
// unless x is nil, with redacted values. p is scratch space, which is empty before and afterwards.
func AppendCanonical(dst []byte, r *rules.Rule, s string, p *Params, x *Redactor) []byte {
	route, params, hasParams := split(r, s)
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
	if p.Len() > 0 && !r.ParamsOnly {
		dst = append(dst, '?')
	}
	return p.appendEach(dst)
}

// split separates the route of a key's text from its parameters. If hasParams is false, the whole
// text is the route. A route may contain a "?" itself: in braces, after an optional ":name", or
// in the name of a resource. Such a name is recognised by the rule, or because not all of it is
// "name=value".
func split(r *rules.Rule, s string) (route, params string, hasParams bool) {
	end := -1
	switch match := &r.Match.Route; {
	case r.ParamsOnly:
		if strings.IndexByte(s, '=') < 0 || isReservedText(r, s) {
			return s, "", false
		}
		return "", s, true
	case isResource(match):
		if tail, ok := strings.CutPrefix(s, match.String()); ok && strings.HasPrefix(tail, "?") {
			end = len(match.String())
		}
	case isRequestLine(s):
		end = pathEnd(s)
	default:
		if end = strings.LastIndexByte(s, '?'); end >= 0 && !areAssignments(s[end+1:]) {
			end = -1
		}
	}
	if end < 0 || isReservedText(r, s[end+1:]) {
		return s, "", false
	}
	return s[:end], s[end+1:], true
}

// isReservedText reports whether the text in the place of parameters is a reserved name of a
// count. No request can spell one, since a parameter has a "=".
func isReservedText(r *rules.Rule, params string) bool {
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

// isResource reports whether the route is the name of a resource.
func isResource(r *rules.Route) bool { return r.Path() == "" && !r.IsAny() }

// isRequestLine reports whether a text begins as "METHOD /path" or "METHOD host/path".
func isRequestLine(s string) bool {
	method, path, ok := strings.Cut(s, " ")
	slash, query := strings.IndexByte(path, '/'), strings.IndexByte(path, '?')
	return ok && method != "" && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && slash >= 0 && (query < 0 || slash < query)
}

// pathEnd returns the index of the "?" that ends the path of a request line, or -1.
func pathEnd(s string) int {
	depth, segment := 0, 0 // depth of braces; start of the path's segment
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

// AppendRoute appends a route as keys write it. The escapes of a path, "/path" or "METHOD /path",
// become those that [base.AppendPath] writes. Bytes that AppendPath would escape are kept, since a
// pattern may have them. A pattern with braces and the name of a resource are kept unchanged.
func AppendRoute(dst []byte, route string) []byte {
	if strings.IndexByte(route, '%') < 0 || strings.IndexByte(route, '{') >= 0 || !strings.HasPrefix(route, "/") && !isRequestLine(route) {
		return append(dst, route...)
	}
	start := len(dst)
	for i := 0; i < len(route); i++ {
		c := route[i]
		if c == '%' {
			b, ok := base.Unhex(route[i:])
			if !ok { // not escapes, then
				return append(dst[:start], route...)
			}
			i += 2
			if c = b; !base.Unreserved[c] {
				dst = append(dst, '%', base.UpperHex[c>>4], base.UpperHex[c&15])
				continue
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// addWritten adds the parameters of a key's text, "[source:]name=value&…". It decodes them as a
// query's, or as a path's if their source is another.
func (p *Params) addWritten(s string) {
	for param := range strings.SplitSeq(s, "&") {
		if param == "" {
			continue
		}
		name, value, _ := strings.Cut(param, "=")
		source, decodeName, decode := rules.Query, decodeForm, decodeForm
		if word, after, ok := strings.Cut(name, ":"); ok && word != "" {
			if from, known := rules.ParseSource(word); known {
				source, name = from, after
			}
			if source != rules.Query {
				decode, decodeName = decodePath, decodePath
			}
			if source == rules.Header {
				decodeName = decodeHeader
			}
		}
		p.add(source, name, value, decodeName, decode)
	}
}

// isSurelyCanonical reports whether s is certainly canonical: a route without escapes, which may
// be missing, and after the first "?" parameters as [Params] writes them. It accepts nearly all
// texts that [Canonicalizer.Append] does not change. It takes one pass, 64 bytes at a time,
// and looks only at reserved bytes.
//
// head is the index of the last value, if any value of unreserved bytes there would make a
// canonical text. If none would, head is 0: two parameters with one name are in the order of
// their values.
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

// written locates a parameter in a canonical text: its start, the start of its name, and the ends
// of its name and its value.
type written struct{ start, name, eq, end int }

// isBefore reports whether q comes before p in the order of [Params.Sort]. The first byte of the
// name nearly always decides.
func (q *written) isBefore(p *written, s string) bool {
	if x, y := s[q.name], s[p.name]; x != y && base.Unreserved[x] && base.Unreserved[y] {
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

func (q *written) source(s string) rules.Source {
	source, _ := rules.ParseSource(strings.TrimSuffix(s[q.start:q.name], ":"))
	return source
}

func isCanonicalEscape(s string) bool {
	b, ok := base.Unhex(s)
	return ok && !base.Unreserved[b] && s[1] < 'a' && s[2] < 'a'
}

// hasUpper reports whether s has an ASCII capital that is not a digit of an escape.
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

// isWrittenSource reports whether word is a source that is written before a name.
func isWrittenSource(word string) bool {
	source, ok := rules.ParseSource(word)
	return ok && source != rules.Query
}

// compareEscaped compares the decoded bytes of two canonical texts. Two escapes that differ have
// their digits in the order of the bytes they encode.
func compareEscaped(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x == '%' {
			x, _ = base.Unhex(a[i:])
		}
		if y == '%' {
			y, _ = base.Unhex(b[i:])
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}
