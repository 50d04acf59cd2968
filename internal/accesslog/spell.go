package accesslog

import (
	"cmp"
	"net/textproto"
	"slices"
	"strings"
)

// jsonShape returns the shape of a server's JSON lines, with the wanted headers and cookies.
func (d *description) jsonShape(values []string) *shape {
	s := &shape{root: newNode(), unit: d.unit, values: len(values), forwarded: d.forwarded}
	ranks := [roles + 1]uint8{}
	for _, field := range d.fields {
		for name := range strings.FieldsSeq(field.names) {
			for _, path := range spell(cmp.Or(d.names, name), name) {
				n := s.root.child(path...)
				n.sign = n.sign || field.sign
				if n.role == noRole {
					n.role, n.rank = field.role, ranks[field.role]
				}
			}
			if d.format != JSON || field.role != roleBytes { // for JSON, both names of bytes have the same rank, so the last counts
				ranks[field.role]++
			}
		}
	}
	for i, value := range values {
		source, name, _ := strings.Cut(value, ":")
		patterns := d.header
		if source == "cookie" {
			patterns = d.cookie
			for _, path := range spell(d.header, "cookie") {
				n := s.root.child(path...)
				n.cookies = append(n.cookies, cookie{name, i})
			}
		}
		for _, path := range spell(patterns, name) {
			if n := s.root.child(path...); n.value < 0 {
				n.value = i
			}
		}
	}
	return s
}

// textShape returns the shape of a server's lines of columns.
func (d *description) textShape(values []string) *shape {
	s := &shape{unit: d.unit, values: len(values), forwarded: d.forwarded}
	for number, name := range strings.Fields(d.text) {
		if r := slices.Index(roleNames[:], name); r >= 0 {
			s.columns = append(s.columns, wantedColumn{number: number, role: role(r), value: -1})
		}
	}
	return s
}

// spell returns the paths of a name by patterns, which are separated by spaces. The steps of a
// path are separated by dots.
func spell(patterns, name string) (paths [][]string) {
	dashed := strings.ReplaceAll(name, "_", "-")
	words := strings.NewReplacer(
		"{name}", name, "{NAME}", strings.ToUpper(name), "{Name}", textproto.CanonicalMIMEHeaderKey(name),
		"{dashed}", dashed, "{DASHED}", strings.ToUpper(dashed), "{Dashed}", textproto.CanonicalMIMEHeaderKey(dashed),
		"{snake}", strings.ReplaceAll(name, "-", "_"),
	)
	for pattern := range strings.FieldsSeq(patterns) {
		var path []string
		for step := range strings.SplitSeq(pattern, ".") {
			path = append(path, words.Replace(step))
		}
		paths = append(paths, path)
	}
	return paths
}
