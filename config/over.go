package config

import (
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

func prioritySettings(p *rules.Priority) settings {
	return settings{
		{"by", fieldBinding{form: schemaWord, read: func(d *decoder, n *fileNode, what string) {
			param := d.param(n, what, rules.Route{})
			p.Source, p.Name = param.Source, param.Name
		}}, "", ""},
		{"first", as(&p.First, schemaSome(schemaText), (*decoder).texts), "", ""},
	}
}

// priority reads the classes of requests. It returns nil if the node is none.
func (d *decoder) priority(n *fileNode, what string) *rules.Priority {
	const example = "for example priority: {by: tier, first: [gold, silver]}"
	p := &rules.Priority{}
	v := d.settings(n, what, example, prioritySettings(p))
	if v == nil {
		return nil
	}
	d.require(n, v, what, example, "by", "first")
	return p
}

// texts reads a list of texts.
func (d *decoder) texts(n *fileNode, what string) (all []string) {
	for _, item := range d.list(n, what) {
		if s, ok := d.scalar(item, what); ok {
			all = append(all, s)
		}
	}
	return all
}

const serveExample = `for example serve: {status: 200, type: application/json, body: "[]"}`

// defaultType is the media type of a response if the file has none.
const defaultType = "text/plain; charset=utf-8"

func serveSettings(r *rules.Response) settings {
	return settings{
		{"status", as(&r.Status, schemaWhole(200, 599), (*decoder).status), "", ""},
		{"type", as(&r.Type, schemaForm(`/`), (*decoder).mediaType), "", ""},
		{"body", plain(&r.Body, schemaText), "", ""},
	}
}

// response reads the response that replaces the handler's. It returns nil if the node is none.
func (d *decoder) response(n *fileNode, what string) *rules.Response {
	r := &rules.Response{Status: 200, Type: defaultType}
	if d.settings(n, what, serveExample, serveSettings(r)) == nil {
		return nil
	}
	return r
}

func (d *decoder) status(n *fileNode, what string) int {
	s, _ := d.scalar(n, what)
	status, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return invalid
	}
	return status
}

func (d *decoder) mediaType(n *fileNode, what string) string {
	s, ok := d.scalar(n, what)
	if s = strings.TrimSpace(s); ok && (strings.ContainsAny(s, "\r\n") || !strings.Contains(s, "/")) {
		d.reject(n, serveExample, "%s %s: want a media type", what, quote(n.text))
	}
	return s
}
