package rules

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"
)

// Params are the parameters of one request, to be written as the text of keys.
// Fill it with AddQuery, AddPath and Add, then Sort it, then append. It is
// meant to be reused (Reset): once its slices have grown it does not allocate.
// Of a query it keeps no copy but the string itself until Reset. It is not safe
// for concurrent use.
type Params struct {
	list    []param
	decoded []byte   // backs the texts that are no part of a query as it came
	hidden  int      // values that Redact has replaced
	pairing *pairing // of the last Pair; nil before the first
}

// param is a parameter as one string, so that one that needs no escaping is
// appended to a key as a whole.
type param struct {
	text   string // name=value, decoded
	eq     int32  // where in text the name ends
	source Source
	marks  marks // one byte, as two would cost a store more
}

// marks is a set of what is known of a parameter.
type marks uint8

const (
	clean    marks = 1 << iota // the text needs no escaping
	named                      // only for rules that name it
	seen                       // by Redact
	redacted                   // the value as it was stands behind the text; see plain
	masked                     // looked at by Mask
)

func (q *param) name() string  { return q.text[:q.eq] }
func (q *param) value() string { return q.text[q.eq+1:] }

// keepDecoded is how large a buffer Reset keeps.
const keepDecoded = 64 << 10

// Reset forgets all parameters.
func (p *Params) Reset() {
	clear(p.list) // so that a pooled Params holds no request's strings
	p.list, p.decoded = p.list[:0], p.decoded[:0]
	p.hidden = 0
	if cap(p.decoded) > keepDecoded {
		p.decoded = nil
	}
}

// Len returns the number of parameters.
func (p *Params) Len() int { return len(p.list) }

// At returns parameter i, its name and value decoded and not redacted. Its strings are valid
// until Reset.
func (p *Params) At(i int) Param {
	q := &p.list[i]
	if q.marks&redacted != 0 {
		return Param{q.source, q.name(), q.plain()}
	}
	return Param{q.source, q.name(), q.value()}
}

// AddQuery adds the parameters of a raw query, decoded as forms are: "&"
// separates (";" does not), "+" is a space, an invalid "%" stays as it is. A
// parameter without "=" has an empty value; repeated and empty ones are kept,
// nothing between two "&" is not a parameter.
func (p *Params) AddQuery(raw string) {
	for i := 0; i < len(raw); i++ {
		start := i
		i = skipPlain(raw, i)
		if i < len(raw) && raw[i] == '=' {
			eq := i
			i = skipPlain(raw, i+1)
			if i == len(raw) || raw[i] == '&' { // as nearly all are
				p.list = append(p.list, param{text: raw[start:i], eq: int32(eq - start), source: Query, marks: clean})
				continue
			}
		}
		for i < len(raw) && raw[i] != '&' {
			i++
		}
		if i > start {
			name, value, _ := strings.Cut(raw[start:i], "=")
			p.add(Query, name, value, decodeForm, decodeForm)
		}
	}
}

// skipPlain is where in s, from i on, the bytes end that stand for themselves.
func skipPlain(s string, i int) int {
	for i < len(s) && unreserved[s[i]] {
		i++
	}
	return i
}

// AddPath adds a path value, decoded from its escaped form.
func (p *Params) AddPath(name, escaped string) { p.add(Path, name, escaped, asIs, decodePath) }

// Add adds one decoded parameter. The name of a header is added in lower case.
func (p *Params) Add(q Param) {
	decodeName := asIs
	if q.Source == Header {
		decodeName = lowerHeader
	}
	p.add(q.Source, q.Name, q.Value, decodeName, asIs)
}

// AddNamed adds one decoded parameter that is a part of keys only if they name it: those of
// all parameters have no headers, for instance.
func (p *Params) AddNamed(q Param) {
	p.Add(q)
	p.list[len(p.list)-1].marks |= named
}

// Named returns how many parameters were added by AddNamed.
func (p *Params) Named() (n int) {
	for i := range p.list {
		if p.list[i].marks&named != 0 {
			n++
		}
	}
	return n
}

// Drop removes the parameters of a source.
func (p *Params) Drop(source Source) {
	kept := p.list[:0]
	for i := range p.list {
		if p.list[i].source != source {
			kept = append(kept, p.list[i])
		}
	}
	clear(p.list[len(kept):])
	p.list = kept
}

// add adds a parameter whose text has to be written.
func (p *Params) add(source Source, name, value string, decodeName, decodeValue func(dst []byte, s string) []byte) {
	start := len(p.decoded)
	p.decoded = decodeName(p.decoded, name)
	eq := len(p.decoded)
	p.decoded = decodeValue(append(p.decoded, '='), value)
	b := p.decoded[start:]
	// The bytes are written once and live until Reset, as the doc says.
	text := unsafe.String(&b[0], len(b))
	var m marks
	if isPlain(text[:eq-start]) && isPlain(text[eq-start+1:]) {
		m = clean
	}
	p.list = append(p.list, param{text: text, eq: int32(eq - start), source: source, marks: m})
}

func asIs(dst []byte, s string) []byte       { return append(dst, s...) }
func decodeForm(dst []byte, s string) []byte { return appendDecoded(dst, s, true) }
func decodePath(dst []byte, s string) []byte { return appendDecoded(dst, s, false) }

// Headers are the same in any case, so keys have their names in lower case.
func lowerHeader(dst []byte, s string) []byte  { return lowerFrom(asIs(dst, s), len(dst)) }
func decodeHeader(dst []byte, s string) []byte { return lowerFrom(decodePath(dst, s), len(dst)) }

// lowerFrom writes the capitals of ASCII in b, from start on, in lower case.
func lowerFrom(b []byte, start int) []byte {
	for i := start; i < len(b); i++ {
		if c := b[i]; 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}

func isPlain(s string) bool { return skipPlain(s, 0) == len(s) }

// Sort puts the parameters in canonical order: by name, then value, then
// source, as decoded bytes.
func (p *Params) Sort() {
	if len(p.list) > 16 { // a hostile query must not cost n²
		slices.SortFunc(p.list, func(a, b param) int { return compareParams(&a, &b) })
		return
	}
	for i := 1; i < len(p.list); i++ {
		for j := i; j > 0 && less(&p.list[j], &p.list[j-1]); j-- {
			p.list[j], p.list[j-1] = p.list[j-1], p.list[j]
		}
	}
}

// less decides by the first byte where it can: one of a name, or the "=" of an
// empty one, which comes first.
func less(a, b *param) bool {
	if x, y := a.text[0], b.text[0]; x != y && x != '=' && y != '=' {
		return x < y
	}
	return compareParams(a, b) < 0
}

func compareParams(a, b *param) int {
	if c := strings.Compare(a.name(), b.name()); c != 0 {
		return c
	}
	if c := strings.Compare(a.value(), b.value()); c != 0 {
		return c
	}
	return cmp.Compare(a.source, b.source)
}

// AppendAll appends "name=value&…" of all parameters but those that secrets hide or that
// were added by AddNamed, and returns how many it appended.
func (p *Params) AppendAll(dst []byte, secrets *Secrets) ([]byte, int) {
	n := 0
	for i := range p.list {
		q := &p.list[i]
		if q.marks&named != 0 {
			continue
		}
		if q.isHidden(secrets) {
			continue
		}
		dst = appendNext(dst, q, n)
		n++
	}
	return dst, n
}

// isHidden reports whether secrets hide the parameter. A redacted value is no secret.
func (q *param) isHidden(secrets *Secrets) bool {
	return q.marks&redacted == 0 && secrets.Hides(q.name())
}

// AppendNamed appends "name=value&…" of the parameters whose source and name are among
// names, and returns how many there are. If one of them comes twice ok is false, and
// what was appended is no key: see [Params.Pair].
func (p *Params) AppendNamed(dst []byte, names []Param) (text []byte, n int, ok bool) {
	var seen uint64
	for i := range p.list {
		q := &p.list[i]
		at := q.indexIn(names)
		if at < 0 {
			continue
		}
		bit := uint64(1) << uint(at) // 0 of names beyond the 64th
		if seen&bit != 0 || bit == 0 {
			return dst, n, false
		}
		seen |= bit
		dst = appendNext(dst, q, n)
		n++
	}
	return dst, n, true
}

// among reports whether the parameter's source and name are among names.
func (q *param) among(names []Param) bool { return q.indexIn(names) >= 0 }

// indexIn returns which of names has the parameter's source and name; -1 if none has.
func (q *param) indexIn(names []Param) int {
	for i := range names {
		if q.source == names[i].Source && q.name() == names[i].Name {
			return i
		}
	}
	return -1
}

// AppendOne appends "[source:]name=value" of parameter i.
func (p *Params) AppendOne(dst []byte, i int) []byte { return appendNext(dst, &p.list[i], 0) }

// appendNext appends a parameter after n others.
func appendNext(dst []byte, q *param, n int) []byte {
	if n > 0 {
		dst = append(dst, '&')
	}
	dst = appendSource(dst, q.source)
	if q.marks&clean != 0 {
		return append(dst, q.text...)
	}
	dst = appendEscaped(dst, q.name())
	dst = append(dst, '=')
	return appendEscaped(dst, q.value())
}

// appendSource appends what stands before the name of a parameter of the source.
func appendSource(dst []byte, source Source) []byte {
	if source == Query {
		return dst
	}
	return append(append(dst, source.String()...), ':')
}
