package config

import (
	"errors"
	"strconv"
	"strings"
	"unicode"

	"github.com/hotparam/hotparam/rules"
)

// validate reports the errors that package rules finds in the rules, each at its place in the
// file. It skips consequences of a field that has already been reported: a rate that cannot be
// read is not also missing.
func (d *decoder) validate(ruleset *rules.Rules, top *fileNode) {
	var found rules.FieldErrors
	if !errors.As(ruleset.Validate(), &found) {
		return
	}
	type errorAt struct {
		pos     position
		message string
	}
	seen := make(map[errorAt]bool)
	for _, e := range found {
		p := d.placeOf(top, e.Field)
		if p.broken || d.anyBroken(top, e.Needs) {
			continue
		}
		line := ""
		if e.Earlier != "" {
			line = "line " + strconv.Itoa(d.placeOf(top, e.Earlier).node.pos.line)
		}
		message := e.Text(p.name, p.value(e.Value), line)
		// A list of patterns makes several exceptions from one.
		if s := (errorAt{p.node.pos, message}); !seen[s] {
			seen[s] = true
			d.report(p.node.pos, printable(e.Hint), "%s", printable(message))
		}
	}
}

// printable returns a text on one line, whatever names of parameters it contains.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func (d *decoder) anyBroken(top *fileNode, paths []string) bool {
	for _, path := range paths {
		if p := d.placeOf(top, path); p.broken || p.exact && p.node.anyBad() {
			return true
		}
	}
	return false
}

// fieldPlace is the place of a field in the file.
type fieldPlace struct {
	node   *fileNode // the field's value, or the node that would contain it
	name   string    // name of the field, as in the file
	exact  bool      // whether node is the field's own value
	broken bool      // whether it, or a node that contains it, has been reported
}

// value returns a field's value as in the file, or code if the file has none.
func (p *fieldPlace) value(code string) string {
	switch {
	case code == "" || !p.exact || p.node.kind != scalarKind:
		return code
	case code == strings.TrimSpace(p.node.text):
		return code
	}
	return quote(p.node.text)
}

// ruleNodes holds the node of a rule, and the nodes of each of its exceptions.
type ruleNodes struct {
	rule       *fileNode
	exceptions []exceptionNodes
}

type exceptionNodes struct {
	item  *fileNode   // item of except, or all of the values in allow or block
	what  string      // "except.values", "allow" or "block"
	names []*fileNode // nodes of the values' names, in their order; nil if they cannot be read
}

// placeOf finds a path of package rules in the file. For a field that is not there, it finds the
// field that causes the error, or the one that would contain it.
func (d *decoder) placeOf(top *fileNode, path string) fieldPlace {
	p := fieldPlace{node: top, exact: true}
	first, tail, _ := strings.Cut(path, ".")
	name, i := cutIndex(first)
	if name != "rules" || i >= len(d.ruleNodes) {
		p.step(name)
		if tail != "" && p.exact && p.node.kind == mapKind {
			field, i := cutIndex(tail)
			p.step(field)
			if i >= 0 {
				p.item(i)
			}
		}
		return p
	}
	nodes := &d.ruleNodes[i]
	p.enter(nodes.rule)
	first, tail, _ = strings.Cut(tail, ".")
	switch name, i := cutIndex(first); {
	case name == "by" && i >= 0:
		p.step("by")
		if p.node.kind == mapKind {
			p.step("combinations")
			p.name = "by"
		}
		p.item(i)
	case name == "hot" && i >= 0:
		p.step("hot")
		if p.node.kind == listKind {
			p.item(i)
		}
		p.threshold(tail)
	case name == "except" && i >= 0:
		p.exception(&nodes.exceptions[i], tail)
	case name == "except":
		p.oneOf("except", "allow", "block")
	case name == "prefix":
		p.or("prefix", "id")
	case name == "limit":
		p.limit(tail)
	case name != "":
		p.step(name)
		if tail != "" {
			p.step(tail)
		}
	}
	return p
}

// threshold moves to a field of a threshold.
func (p *fieldPlace) threshold(name string) {
	if name == "" || p.node.kind != mapKind {
		return // the threshold is one word
	}
	fields := []string{name}
	switch min := p.node.child("min"); {
	case name == "window" && min != nil && strings.Contains(min.text, "/"):
		fields = append(fields, "min")
		fallthrough
	case name == "window":
		fields = append(fields, kindFields...)
	case name == "share" || name == "jump":
		fields = append(fields, "rate") // a rate may be a share or a jump
	}
	p.oneOf(fields...)
}

// exception moves to a field of an exception.
func (p *fieldPlace) exception(nodes *exceptionNodes, path string) {
	p.enter(nodes.item)
	p.name = "except"
	field, path, _ := strings.Cut(path, ".")
	name, i := cutIndex(field)
	switch {
	case name == "values" && nodes.names == nil:
		p.broken = true
	case name == "values" && i >= 0:
		p.enter(nodes.names[i])
		p.name = nodes.what
	case name == "values" && nodes.what != "except.values":
		p.name = nodes.what
	case name == "values":
		p.step("values")
		p.exact = p.exact && p.node.kind != scalarKind
	case nodes.what != "except.values":
		// An exception of allow or block has no fields but values.
	case name == "limit" && path != "":
		p.limit(path)
	case name != "":
		p.step(name)
	}
}

// limit moves to a field of a limit. A field that is not there is blamed on the rate.
func (p *fieldPlace) limit(field string) {
	p.name = ""
	p.step("limit")
	for i, name := range strings.Split(field, ".") {
		switch {
		case name == "" || p.node.kind != mapKind:
			if name != "" && p.node.kind == scalarKind && name != "rate" {
				p.name, p.exact = "limit."+field, false
			}
			return
		case i == 0:
			p.or(name, "rate")
		default:
			p.step(name)
		}
	}
}

// enter moves to n.
func (p *fieldPlace) enter(n *fileNode) {
	p.node, p.exact = n, true
	p.broken = p.broken || n.bad || n.kind == nullKind
}

// step moves to a field, if it is there.
func (p *fieldPlace) step(name string) { p.or(name, name) }

// or moves to a field or, if it is not there, to the field blamed for that.
func (p *fieldPlace) or(name, blamed string) {
	full := name
	if p.name != "" {
		full = p.name + "." + name
	}
	child := p.node.child(name)
	if exact := child != nil; exact {
		p.enter(child)
	} else {
		if child = p.node.child(blamed); child != nil {
			p.enter(child)
		}
		p.exact = false
	}
	p.name = full
}

// oneOf moves to the first of the fields that is there. They are names of one thing.
func (p *fieldPlace) oneOf(names ...string) {
	for _, name := range names {
		if p.node.child(name) != nil {
			p.step(name)
			return
		}
	}
	p.step(names[0])
}

// item moves to an item of a list.
func (p *fieldPlace) item(i int) {
	if p.node.kind == listKind && i < len(p.node.items) {
		p.enter(p.node.items[i])
	} else {
		p.exact = false
	}
}

// child returns the value of a map's field, even an empty one, or nil if there is none.
func (n *fileNode) child(name string) *fileNode {
	for _, f := range n.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// anyBad reports whether n or something in it has been reported.
func (n *fileNode) anyBad() bool {
	if n.bad || n.incomplete || n.kind == nullKind {
		return true
	}
	for _, f := range n.fields {
		if f.value.anyBad() {
			return true
		}
	}
	for _, item := range n.items {
		if item.anyBad() {
			return true
		}
	}
	return false
}

// cutIndex splits "hot[2]" into its name and its index, which is -1 if there is none.
func cutIndex(s string) (string, int) {
	name, after, ok := strings.Cut(s, "[")
	i, err := strconv.Atoi(strings.TrimSuffix(after, "]"))
	if !ok || err != nil {
		return name, -1
	}
	return name, i
}
