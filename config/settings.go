package config

import (
	"fmt"
	"reflect"
	"strings"
)

// settings are the fields of a section that becomes one struct. They are the only place where
// each field is named. Reading a file, filling in defaults, comparing two files and describing
// the format for editors all use them. They are bound to a struct as flags are by
// [flag.FlagSet].
type settings []setting

// setting is a field of a section.
type setting struct {
	name      string
	value     value
	byDefault string // as written in a file; "" if it has none, or is filled in elsewhere
	doc       string // description for editors
}

// value binds a setting to a field.
type value struct {
	to     any // pointer to the field of the struct
	read   func(d *decoder, n *node, what string)
	schema schema
	inner  settings          // settings of a section within the section
	items  func() []settings // settings of each section in a list
}

// as returns a value that stores the result of read in to.
func as[T any](to *T, s schema, read func(d *decoder, n *node, what string) T) value {
	return value{to: to, schema: s, read: func(d *decoder, n *node, what string) { *to = read(d, n, what) }}
}

// shown returns a value with a schema only, for a field that is read otherwise, as rules are.
func shown(s schema) value { return value{schema: s} }

// shownAs returns v with another schema.
func (v value) shownAs(s schema) value {
	v.schema = s
	return v
}

// within returns a value for a section within the section.
func within(to any, inner settings, example string) value {
	return value{to: to, inner: inner, schema: inner.schema(), read: func(d *decoder, n *node, what string) {
		d.settings(n, what, example, inner)
	}}
}

// settings reads the named section into the fields that all are bound to. It returns its values.
func (d *decoder) settings(n *node, name, example string, all settings) values {
	v := d.section(n, section{name: name, prefix: name + ".", fields: all, example: example})
	for _, s := range all {
		if field := v.get(s.name); field != nil {
			s.value.read(d, field, name+"."+s.name)
		}
		if secret, isEnv := strings.CutSuffix(s.name, "_env"); isEnv && v.get(s.name) != nil && v.get(secret+"_file") != nil {
			d.report(v.get(s.name).pos, "keep one of them", "%s.%s_file and %s_env are both there", name, secret, secret)
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

// setDefaults fills in the settings that are zero.
func (all settings) setDefaults() {
	for _, s := range all {
		s.value.inner.setDefaults()
		if s.byDefault != "" && reflect.ValueOf(s.value.to).Elem().IsZero() {
			s.value.read(new(decoder), &node{kind: scalarKind, text: s.byDefault}, s.name)
		}
	}
}

// differ returns the names of the settings whose values differ in other, as paths below prefix.
func (all settings) differ(other settings, prefix string) (names []string) {
	for i, s := range all {
		present, earlier := s.value, other[i].value
		name := prefix + s.name
		switch {
		case present.inner != nil:
			names = append(names, present.inner.differ(earlier.inner, name+".")...)
		case present.items != nil && len(present.items()) == len(earlier.items()):
			for j, item := range present.items() {
				names = append(names, item.differ(earlier.items()[j], fmt.Sprintf("%s[%d].", name, j))...)
			}
		case !reflect.DeepEqual(present.to, earlier.to):
			names = append(names, name)
		}
	}
	return names
}

// schema returns the schema of the section. The required fields must be present.
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
