package hotparam

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"
)

// Params are the parameters of one request, to be written as the text of keys.
// Fill it with AddQuery, AddPath and Add, then Sort it, then append. It is
// meant to be reused (Reset): once its slices have grown it does not allocate.
// It keeps no copy of the strings it is given, and is not safe for concurrent
// use.
type Params struct {
	list    []param
	decoded []byte // backs the names and values that had escapes
}

type param struct {
	Param
	clean bool // name and value need no escaping
}

// Reset forgets all parameters.
func (p *Params) Reset() {
	clear(p.list) // so that a pooled Params holds no request's strings
	p.list, p.decoded = p.list[:0], p.decoded[:0]
}

// Len is how many parameters there are.
func (p *Params) Len() int { return len(p.list) }

// At is parameter i, its name and value decoded. Its strings are valid until
// Reset.
func (p *Params) At(i int) Param { return p.list[i].Param }

// AddQuery adds the parameters of a raw query, decoded as forms are: "&"
// separates (";" does not), "+" is a space, an invalid "%" stays as it is. A
// parameter without "=" has an empty value; repeated and empty ones are kept,
// nothing between two "&" is not a parameter.
func (p *Params) AddQuery(raw string) {
	for i := 0; i < len(raw); {
		start, eq, clean := i, -1, true
	scan:
		for ; i < len(raw); i++ {
			switch classes[raw[i]] {
			case plain:
			case ampers:
				break scan
			case equals:
				if eq < 0 {
					eq = i
				} else {
					clean = false
				}
			default:
				clean = false
			}
		}
		end := i
		i++ // past the &
		if end == start {
			continue
		}
		name, value := raw[start:end], ""
		if eq >= 0 {
			name, value = raw[start:eq], raw[eq+1:end]
		}
		if !clean {
			name, value = p.decode(name, true), p.decode(value, true)
		}
		p.list = append(p.list, param{Param{Query, name, value}, clean})
	}
}

// AddPath adds a path value, decoded from its escaped form.
func (p *Params) AddPath(name, escaped string) {
	p.Add(Param{Path, name, p.decode(escaped, false)})
}

// Add adds one decoded parameter.
func (p *Params) Add(q Param) {
	p.list = append(p.list, param{q, isPlain(q.Name) && isPlain(q.Value)})
}

func isPlain(s string) bool {
	for i := range len(s) {
		if classes[s[i]] != plain {
			return false
		}
	}
	return true
}

// decode returns s itself when there is nothing to decode.
func (p *Params) decode(s string, form bool) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	start := len(p.decoded)
	p.decoded = appendDecoded(p.decoded, s, form)
	b := p.decoded[start:]
	if len(b) == 0 {
		return ""
	}
	// The bytes are written once and live until Reset, as the doc says.
	return unsafe.String(&b[0], len(b))
}

// Sort puts the parameters in canonical order: by name, then value, then
// source, as decoded bytes.
func (p *Params) Sort() {
	if len(p.list) > 16 { // a hostile query must not cost n²
		slices.SortFunc(p.list, compareParams)
		return
	}
	for i := 1; i < len(p.list); i++ {
		for j := i; j > 0 && compareParams(p.list[j], p.list[j-1]) < 0; j-- {
			p.list[j], p.list[j-1] = p.list[j-1], p.list[j]
		}
	}
}

func compareParams(a, b param) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	if c := strings.Compare(a.Value, b.Value); c != 0 {
		return c
	}
	return cmp.Compare(a.Source, b.Source)
}

// AppendAll appends "name=value&…" of all parameters but those that secrets
// hide, and tells how many it appended.
func (p *Params) AppendAll(dst []byte, secrets *Secrets) ([]byte, int) {
	n := 0
	for i := range p.list {
		if secrets.Hides(p.list[i].Name) {
			continue
		}
		dst = p.appendNext(dst, i, n)
		n++
	}
	return dst, n
}

// AppendNamed appends "name=value&…" of the parameters whose source and name
// are among names, and tells how many it appended.
func (p *Params) AppendNamed(dst []byte, names []Param) ([]byte, int) {
	n := 0
	for i := range p.list {
		for j := range names {
			if p.list[i].Name == names[j].Name && p.list[i].Source == names[j].Source {
				dst = p.appendNext(dst, i, n)
				n++
				break
			}
		}
	}
	return dst, n
}

func (p *Params) appendNext(dst []byte, i, n int) []byte {
	if n > 0 {
		dst = append(dst, '&')
	}
	return p.AppendOne(dst, i)
}

// AppendOne appends "[source:]name=value" of parameter i.
func (p *Params) AppendOne(dst []byte, i int) []byte {
	q := &p.list[i]
	if q.Source != Query {
		dst = append(dst, q.Source.String()...)
		dst = append(dst, ':')
	}
	if q.clean {
		dst = append(dst, q.Name...)
		dst = append(dst, '=')
		return append(dst, q.Value...)
	}
	dst = appendEscaped(dst, q.Name)
	dst = append(dst, '=')
	return appendEscaped(dst, q.Value)
}
