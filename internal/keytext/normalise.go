package keytext

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// Params holds the parameters of one request, to be written as the text of keys. Fill it with
// AddQuery, AddPath and Add, then Sort it, then append. It is meant to be reused after Reset:
// once its slices have grown it does not allocate. It does not copy a query, but keeps the string
// itself until Reset. It is not safe for concurrent use.
type Params struct {
	list    []param
	decoded []byte   // backs the texts that are not slices of a query
	hidden  int      // number of values that Redact has replaced
	written []int32  // indices of the parameters of the last key, if there are such values
	pairing *pairing // the result of the last Pair; nil before the first
}

// param is a parameter as one string, so that one that needs no escaping is appended to a key as
// a whole.
type param struct {
	text   string // name=value, decoded
	eq     int32  // where in text the name ends
	source rules.Source
	marks  marks // one byte, as two would cost a store more
}

// marks is a set of properties of a parameter.
type marks uint8

const (
	clean    marks = 1 << iota // the text needs no escaping
	named                      // part of a key only if the rule names it
	seen                       // examined by Redact
	redacted                   // the original value follows the text in memory; see plain
	masked                     // examined by Mask
)

func (q *param) name() string  { return q.text[:q.eq] }
func (q *param) value() string { return q.text[q.eq+1:] }

// keepDecoded is the largest buffer that Reset keeps, in bytes.
const keepDecoded = 64 << 10

// Reset forgets all parameters.
func (p *Params) Reset() {
	clear(p.list) // so that a pooled Params holds no request's strings
	p.list, p.decoded = p.list[:0], p.decoded[:0]
	p.hidden, p.written = 0, p.written[:0]
	if cap(p.decoded) > keepDecoded {
		p.decoded = nil
	}
}

// Len returns the number of parameters.
func (p *Params) Len() int { return len(p.list) }

// At returns parameter i with its name and value decoded and not redacted. Its strings are valid
// until Reset.
func (p *Params) At(i int) rules.Param {
	q := &p.list[i]
	if q.marks&redacted != 0 {
		return rules.Param{Source: q.source, Name: q.name(), Value: q.plain()}
	}
	return rules.Param{Source: q.source, Name: q.name(), Value: q.value()}
}

// AddQuery adds the parameters of a raw query. They are decoded as a form's: "&" separates
// parameters (";" does not), "+" is a space, and an invalid "%" is kept. A parameter without "="
// has an empty value. Repeated and empty parameters are kept, but nothing between two "&" is not
// a parameter.
func (p *Params) AddQuery(raw string) {
	for i := 0; i < len(raw); i++ {
		start := i
		i = skipPlain(raw, i)
		if i < len(raw) && raw[i] == '=' {
			eq := i
			i = skipPlain(raw, i+1)
			if i == len(raw) || raw[i] == '&' { // as nearly all are
				p.list = append(p.list, param{text: raw[start:i], eq: int32(eq - start), source: rules.Query, marks: clean})
				continue
			}
		}
		for i < len(raw) && raw[i] != '&' {
			i++
		}
		if i > start {
			name, value, _ := strings.Cut(raw[start:i], "=")
			p.add(rules.Query, name, value, decodeForm, decodeForm)
		}
	}
}

// skipPlain returns the index in s, from i on, of the first byte that is not unreserved, or
// len(s).
func skipPlain(s string, i int) int {
	for i < len(s) && base.Unreserved[s[i]] {
		i++
	}
	return i
}

// AddPath adds a path value, which it decodes from its escaped form.
func (p *Params) AddPath(name, escaped string) { p.add(rules.Path, name, escaped, asIs, decodePath) }

// Add adds one decoded parameter. The name of a header is added in lower case.
func (p *Params) Add(q rules.Param) {
	decodeName := asIs
	if q.Source == rules.Header {
		decodeName = lowerHeader
	}
	p.add(q.Source, q.Name, q.Value, decodeName, asIs)
}

// AddNamed adds one decoded parameter that is part of a key only if the rule names it. For
// instance, headers are never part of the keys of all parameters.
func (p *Params) AddNamed(q rules.Param) {
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
func (p *Params) Drop(source rules.Source) {
	p.list = slices.DeleteFunc(p.list, func(q param) bool { return q.source == source })
}

// add adds a parameter whose text must be written to p.decoded.
func (p *Params) add(source rules.Source, name, value string, decodeName, decodeValue func(dst []byte, s string) []byte) {
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
func decodeForm(dst []byte, s string) []byte { return base.AppendDecoded(dst, s, true) }
func decodePath(dst []byte, s string) []byte { return base.AppendDecoded(dst, s, false) }

// Header names are case-insensitive, so keys have them in lower case.
func lowerHeader(dst []byte, s string) []byte  { return base.LowerFrom(asIs(dst, s), len(dst)) }
func decodeHeader(dst []byte, s string) []byte { return base.LowerFrom(decodePath(dst, s), len(dst)) }

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

// less compares the first bytes of the names if they decide. An "=" is the end of an empty name,
// which comes first.
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

// AppendAll appends "name=value&…" of all parameters except hidden ones and those that AddNamed
// added. It returns how many it appended.
func (p *Params) AppendAll(dst []byte, secrets *rules.Secrets) ([]byte, int) {
	n := 0
	for i := range p.list {
		if p.makesKey(i, nil, secrets) {
			dst = p.appendNext(dst, i, n)
			n++
		}
	}
	return dst, n
}

// AppendNamed appends "name=value&…" of the parameters whose source and name are among names, and
// returns their number. If one of them is repeated, ok is false and the appended text is no key:
// see [Params.Pair].
func (p *Params) AppendNamed(dst []byte, names []rules.Param) (text []byte, n int, ok bool) {
	var seen uint64
	for i := range p.list {
		index := p.list[i].indexIn(names)
		if index < 0 {
			continue
		}
		bit := uint64(1) << uint(index) // 0 of names beyond the 64th
		if seen&bit != 0 || bit == 0 {
			return dst, n, false
		}
		seen |= bit
		dst = p.appendNext(dst, i, n)
		n++
	}
	return dst, n, true
}

// among reports whether the parameter's source and name are among names.
func (q *param) among(names []rules.Param) bool { return q.indexIn(names) >= 0 }

// indexIn returns the index in names of the parameter's source and name, or -1.
func (q *param) indexIn(names []rules.Param) int {
	for i := range names {
		if q.source == names[i].Source && q.name() == names[i].Name {
			return i
		}
	}
	return -1
}

// appendEach appends "name=value&…" of all parameters.
func (p *Params) appendEach(dst []byte) []byte {
	for i := range p.list {
		dst = p.appendNext(dst, i, i)
	}
	return dst
}

// AppendOne appends "[source:]name=value" of parameter i.
func (p *Params) AppendOne(dst []byte, i int) []byte { return p.appendNext(dst, i, 0) }

// appendNext appends parameter i after n others of a key.
func (p *Params) appendNext(dst []byte, i, n int) []byte {
	if p.hidden > 0 {
		p.written = append(p.written[:n], int32(i))
	}
	q := &p.list[i]
	if n > 0 {
		dst = append(dst, '&')
	}
	dst = appendSource(dst, q.source)
	if q.marks&clean != 0 {
		return append(dst, q.text...)
	}
	dst = base.AppendEscaped(dst, q.name())
	dst = append(dst, '=')
	return base.AppendEscaped(dst, q.value())
}

// appendSource appends the prefix of a parameter's name: the source and a colon, nothing for the
// query.
func appendSource(dst []byte, source rules.Source) []byte {
	if source == rules.Query {
		return dst
	}
	return append(append(dst, source.String()...), ':')
}
