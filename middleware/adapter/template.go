package adapter

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

// Part is a piece of a router's template: text, or a parameter if Name is set.
type Part struct {
	Text string // unescaped, with slashes
	Name string // name of a parameter
	Rest bool   // the parameter is the rest of the path
}

// template is a router's template in the syntax of [http.ServeMux].
type template struct {
	pattern string
	get     string // the pattern of GET
	parts   []Part
	params  int
}

// newTemplate returns the template of parts. These have no equivalent in the syntax of
// http.ServeMux:
//
//   - a segment of text and parameters, "{month}-{day}", becomes one parameter, {month_day};
//   - letters that a name cannot have become "_", and the second parameter of a name is name_2;
//   - the rest of a path without a name is {path...}.
func newTemplate(parts []Part) *template {
	t := &template{parts: parts}
	var b patternBuilder
	for _, p := range parts {
		if p.Name == "" && !p.Rest {
			b.addText(p.Text)
			continue
		}
		t.params++
		b.addParam(p)
	}
	b.endSegment(true)
	t.pattern = b.pattern.String()
	t.get = "GET " + t.pattern
	return t
}

// patternBuilder builds a pattern segment by segment.
type patternBuilder struct {
	pattern strings.Builder
	names   []string // names of the pattern so far
	open    bool     // whether a segment has begun

	text      string   // text of the present segment
	params    []string // parameters of the present segment
	takesRest bool
}

func (b *patternBuilder) addText(text string) {
	for i, part := range strings.Split(text, "/") {
		if i > 0 {
			b.endSegment(false)
		}
		b.text += part
	}
}

func (b *patternBuilder) addParam(p Part) {
	name := p.Name
	if name == "" || name == "*" {
		name = "path"
	}
	b.params = append(b.params, identifier(name))
	b.takesRest = b.takesRest || p.Rest
}

// endSegment writes the present segment. Text before the first slash is not a segment.
func (b *patternBuilder) endSegment(last bool) {
	if !b.open {
		b.open = true
		if b.text == "" && len(b.params) == 0 && !last {
			return
		}
	}
	b.pattern.WriteByte('/')
	switch {
	case len(b.params) > 0:
		b.pattern.WriteString("{" + b.unique(strings.Join(b.params, "_")))
		if b.takesRest {
			b.pattern.WriteString("...")
		}
		b.pattern.WriteByte('}')
	case b.text == "" && last: // this path, and none below it
		b.pattern.WriteString("{$}")
	default:
		b.pattern.Write(base.AppendPath(nil, strings.ReplaceAll(b.text, "%", "%25")))
	}
	b.text, b.params, b.takesRest = "", nil, false
}

// unique returns name, with a number if the pattern already has it.
func (b *patternBuilder) unique(name string) string {
	for i := 2; slices.Contains(b.names, name); i++ {
		if next := name + "_" + strconv.Itoa(i); !slices.Contains(b.names, next) {
			name = next
		}
	}
	b.names = append(b.names, name)
	return name
}

// identifier returns name as a Go identifier.
func identifier(name string) string {
	id := []byte(name)
	for i, c := range id {
		if letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80; !letter && (c < '0' || c > '9') {
			id[i] = '_'
		}
	}
	if len(id) > 0 && '0' <= id[0] && id[0] <= '9' {
		return "_" + string(id)
	}
	return string(id)
}

// appendPath appends the canonical forms of the sent path and of the template with the router's
// values, and reports whether they are the same. Routers return values escaped or not,
// depending on their settings and on the path, so appendPath tries both. If the router has
// changed the path, the values count as escaped if one with a "%" was sent that way.
func (t *template) appendPath(sentBuf, pathBuf []byte, sent string, values []string) (canonical, path []byte, same bool) {
	canonical = base.AppendPath(sentBuf, sent)
	for _, escaped := range []bool{false, true} {
		if path = t.fill(pathBuf, values, escaped); bytes.Equal(path, canonical) {
			return canonical, path, true
		}
	}
	escaped := slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "%") && strings.Contains(sent, v) })
	return canonical, t.fill(pathBuf, values, escaped), false
}

// emptyValue replaces an empty value of a parameter, "/u//items". Some routers allow it, but no
// parameter is empty in a pattern of [http.ServeMux], and a path without the parameter would
// evade limits by the others.
const emptyValue = "\x00"

// fill appends the template with the values in place of its parameters.
func (t *template) fill(dst []byte, values []string, escaped bool) []byte {
	i := 0
	for _, p := range t.parts {
		text, slashes := p.Text, true
		if p.Name != "" || p.Rest {
			text, slashes = values[i], p.Rest
			i++
			if text == "" && !p.Rest {
				text = emptyValue
			}
		}
		if p.Name == "" && !p.Rest || !escaped {
			text = strings.ReplaceAll(text, "%", "%25")
		}
		if !slashes {
			text = strings.ReplaceAll(text, "/", "%2F")
		}
		dst = base.AppendPath(dst, text)
	}
	return dst
}
