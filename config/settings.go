package config

import (
	"fmt"
	"reflect"
	"strings"
)

// settings are the fields of a section that becomes one struct: the only place where each is
// named. What reads a file, fills in defaults, compares two files or describes the format for
// editors goes through them, bound to the struct at hand as flags are by [flag.FlagSet].
type settings []setting

// setting is a field of a section.
type setting struct {
	name      string
	value     value
	byDefault string // as a file writes it; "" if it has none, or one that others fill in
	doc       string // what it is, for editors
}

// value is what a setting is bound to.
type value struct {
	to     any // pointer to the field of the struct
	read   func(d *decoder, n *node, what string)
	schema schema
	inner  settings          // of a section within the section
	items  func() []settings // of a list of sections
}

// as returns the value that read makes of a node.
func as[T any](to *T, s schema, read func(d *decoder, n *node, what string) T) value {
	return value{to: to, schema: s, read: func(d *decoder, n *node, what string) { *to = read(d, n, what) }}
}

// shown is a value that is read in another way, as those of rules are.
func shown(s schema) value { return value{schema: s} }

// shownAs returns v with another schema.
func (v value) shownAs(s schema) value {
	v.schema = s
	return v
}

// within returns the value that is a section of its own.
func within(to any, inner settings, example string) value {
	return value{to: to, inner: inner, schema: inner.schema(), read: func(d *decoder, n *node, what string) {
		d.settings(n, what, example, inner)
	}}
}

// settings reads the section of a name into what all are bound to, and returns its fields.
func (d *decoder) settings(n *node, name, example string, all settings) values {
	v := d.section(n, section{name: name, prefix: name + ".", fields: all, example: example})
	for _, s := range all {
		if field := v.get(s.name); field != nil {
			s.value.read(d, field, name+"."+s.name)
		}
		if secret, isEnv := strings.CutSuffix(s.name, "_env"); isEnv && v.get(s.name) != nil && v.get(secret+"_file") != nil {
			d.report(v.get(s.name).at, "keep one of them", "%s.%s_file and %s_env are both there", name, secret, secret)
		}
	}
	return v
}

func (all settings) names() (names []string) {
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

// setDefaults fills in what is zero.
func (all settings) setDefaults() {
	for _, s := range all {
		s.value.inner.setDefaults()
		if s.byDefault != "" && reflect.ValueOf(s.value.to).Elem().IsZero() {
			s.value.read(new(decoder), &node{kind: scalarKind, text: s.byDefault}, s.name)
		}
	}
}

// differ returns the names of those that have other values in other, as paths below prefix.
func (all settings) differ(other settings, prefix string) (names []string) {
	for i, s := range all {
		is, was := s.value, other[i].value
		name := prefix + s.name
		switch {
		case is.inner != nil:
			names = append(names, is.inner.differ(was.inner, name+".")...)
		case is.items != nil && len(is.items()) == len(was.items()):
			for j, item := range is.items() {
				names = append(names, item.differ(was.items()[j], fmt.Sprintf("%s[%d].", name, j))...)
			}
		case !reflect.DeepEqual(is.to, was.to):
			names = append(names, name)
		}
	}
	return names
}

// schema returns that of the section. The named fields must be there.
func (all settings) schema(required ...string) schema {
	properties := make(schema, len(all))
	for _, s := range all {
		about := s.doc
		if s.byDefault != "" {
			about = strings.TrimPrefix(about+". Default: "+s.byDefault, ". ")
		}
		if properties[s.name] = s.value.schema; about != "" {
			properties[s.name] = doc(s.value.schema, about)
		}
	}
	object := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		object["required"] = required
	}
	return object
}
