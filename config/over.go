package config

import (
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

var prioritySection = section{
	name: "limit.priority", prefix: "limit.priority.",
	fields:  settings{{"by", shown(schemaWord()), "", ""}, {"first", shown(schemaSome(schemaText())), "", ""}},
	example: "for example priority: {by: tier, first: [gold, silver]}",
}

// priority reads the classes of requests. It returns nil if there are none.
func (r *ruleReader) priority(n *node) *rules.Priority {
	v := r.section(n, prioritySection)
	if v == nil {
		return nil
	}
	p := &rules.Priority{}
	if s, ok := r.scalar(v.get("by"), "limit.priority.by"); ok {
		param, err := parseName(s, rules.Route{})
		if err != nil {
			r.reject(v.get("by"), err.hint, "limit.priority.by %s: %s", quote(s), err.message)
		}
		p.Source, p.Name = param.Source, param.Name
	}
	for _, item := range r.list(v.get("first"), "limit.priority.first") {
		if s, ok := r.scalar(item, "limit.priority.first"); ok {
			p.First = append(p.First, s)
		}
	}
	for _, name := range prioritySection.fields.names() {
		if !v.has(name) {
			r.reject(n, prioritySection.example, "limit.priority.%s is missing", name)
		}
	}
	return p
}

var serveSection = section{
	name: "limit.serve", prefix: "limit.serve.",
	fields: settings{
		{"status", shown(schemaWhole(200, 599)), "", ""},
		{"type", shown(schemaForm(`/`)), "", ""},
		{"body", shown(schemaText()), "", ""},
	},
	example: `for example serve: {status: 200, type: application/json, body: "[]"}`,
}

// defaultType is the media type of an answer if the file has none.
const defaultType = "text/plain; charset=utf-8"

// answer reads the response that replaces the handler's. It returns nil if the program sets it.
func (r *ruleReader) answer(n *node) *rules.Response {
	v := r.section(n, serveSection)
	if v == nil {
		return nil
	}
	a := &rules.Response{Status: 200, Type: defaultType}
	if s, ok := r.scalar(v.get("status"), "limit.serve.status"); ok {
		status, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			status = -1
		}
		a.Status = status
	}
	if s, ok := r.scalar(v.get("type"), "limit.serve.type"); ok {
		a.Type = strings.TrimSpace(s)
		if strings.ContainsAny(a.Type, "\r\n") || !strings.Contains(a.Type, "/") {
			r.reject(v.get("type"), serveSection.example, "limit.serve.type %s: want a media type", quote(s))
		}
	}
	a.Body, _ = r.scalar(v.get("body"), "limit.serve.body")
	return a
}
