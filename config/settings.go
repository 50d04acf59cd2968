package config

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
)

// settings are the fields of a section. They are the only place where each field is named.
// Reading a file, filling in defaults, comparing two files and describing the format for editors
// all use them. They are bound to variables as flags are by [flag.FlagSet].
type settings []setting

// section describes a map whose fields are known.
type section struct {
	name    string // name in messages
	prefix  string // prefix of its fields' names in messages
	fields  settings
	example string // hint for a node that is not such a map
}

// setting is a field of a section.
type setting struct {
	name      string
	value     fieldBinding
	byDefault string // as written in a file; "" if it has none, or is filled in elsewhere
	doc       string // description for editors
}

// fieldBinding binds a setting to a field.
type fieldBinding struct {
	to    any // pointer to the variable
	read  func(d *decoder, n *fileNode, what string)
	form  form
	inner settings          // settings of a section within the section
	items func() []settings // settings of each section in a list
}

// as returns a value that stores the result of read in to.
func as[T any](to *T, f form, read func(d *decoder, n *fileNode, what string) T) fieldBinding {
	return fieldBinding{to: to, form: f, read: func(d *decoder, n *fileNode, what string) { *to = read(d, n, what) }}
}

// shown returns a value with a form only, for a field that is read together with others.
func shown(f form) fieldBinding { return fieldBinding{form: f} }

// shownAs returns v with another form.
func (v fieldBinding) shownAs(f form) fieldBinding {
	v.form = f
	return v
}

// within returns a value for a section within the section. Each check is called with the values of a
// section that has been read.
func within(to any, inner settings, example string, checks ...func(d *decoder, n *fileNode, v values)) fieldBinding {
	return fieldBinding{to: to, inner: inner, form: inner.form(), read: func(d *decoder, n *fileNode, what string) {
		v := d.settings(n, what, example, inner)
		for _, check := range checks {
			if v != nil {
				check(d, n, v)
			}
		}
	}}
}

// notEmpty is a check of a section that must have fields.
func notEmpty(what, example string) func(*decoder, *fileNode, values) {
	return func(d *decoder, n *fileNode, _ values) {
		if len(n.fields) == 0 {
			d.reject(n, example, "%s is empty", what)
		}
	}
}

// settings reads the named section into the variables that all are bound to. It returns its
// values.
func (d *decoder) settings(n *fileNode, name, example string, all settings) values {
	return d.section(n, section{name: name, prefix: name + ".", fields: all, example: example})
}

// section reads a section into the variables that its fields are bound to, in their order. It
// returns nil if the node is not a map.
func (d *decoder) section(n *fileNode, s section) values {
	v := d.fields(n, s)
	d.read(v, s.prefix, s.fields)
	return v
}

// read reads those of the values that all name.
func (d *decoder) read(v values, prefix string, all settings) {
	for _, s := range all {
		field := v.get(s.name)
		if field == nil {
			continue
		}
		if s.value.read != nil {
			s.value.read(d, field, prefix+s.name)
		}
		if secret, isEnv := strings.CutSuffix(s.name, "_env"); isEnv && v.get(secret+"_file") != nil {
			d.report(field.pos, "keep one of them", "%s%s_file and %s_env are both there", prefix, secret, secret)
		}
	}
}

// require reports those of the fields that section n lacks.
func (d *decoder) require(n *fileNode, v values, section, example string, fields ...string) {
	for _, name := range fields {
		if !v.has(name) {
			d.reject(n, example, "%s.%s is missing", section, name)
		}
	}
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
			s.value.read(new(decoder), &fileNode{kind: scalarKind, text: s.byDefault}, s.name)
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

// form returns the form of the section.
func (all settings) form(required ...string) form {
	return func() schema { return all.schema(required...) }
}

// schema returns the schema of the section. The required fields must be present.
func (all settings) schema(required ...string) schema {
	properties := make(schema, len(all))
	for _, s := range all {
		about, property := s.doc, maps.Clone(s.value.form())
		if s.byDefault != "" {
			about = strings.TrimPrefix(about+". Default: "+s.byDefault, ". ")
		}
		if about != "" {
			property["description"] = about // which editors show
		}
		properties[s.name] = property
	}
	object := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		object["required"] = required
	}
	return object
}
