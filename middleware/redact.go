package middleware

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// Values are redacted before they are written into a key, so every use of keys is redacted:
// counting, limits in Redis, the hot set. The file has plain values to compare with, so match
// and priority read the parameters, and exceptions read a second, plain text of the key.

// findRedacted determines the effects of redaction on the rule.
func (s *ruleSet) findRedacted(r *rule) {
	redacts := func(p rules.Param) bool { return s.redaction.Redacts(p.Source, p.Name) }
	r.redacts = slices.ContainsFunc(r.By.Names, redacts) || len(r.By.Names) == 0 && s.redaction.Concerns(rules.Query)
	r.reveals = slices.ContainsFunc(r.Except, func(x rules.Exception) bool {
		return slices.ContainsFunc(x.Values, func(v rules.QueryMatch) bool { return redacts(v.Param()) })
	})
}

// holdsRedacted reports whether a route is a path that contains a redacted value, "/u/7" instead
// of the template "/u/{id}" of one of the rules.
func (s *ruleSet) holdsRedacted(method, path string) bool {
	if !s.redaction.Concerns(rules.Path) || strings.Contains(path, "{") {
		return false
	}
	path = string(base.AppendPath(nil, path))
	for i := range s.rules {
		template := &s.rules[i].Match.Route
		redacts := func(name string) bool { return s.redaction.Redacts(rules.Path, name) }
		if slices.ContainsFunc(template.Names(), redacts) && matchesPath(template, method, path) {
			return true
		}
	}
	return false
}

// sortParams sorts parameters that were added in the order of keys. It redacts values and masks
// secrets within values first.
func (r *request) sortParams(p *keytext.Params) {
	if set := r.route.set; set.redaction != nil {
		p.Redact(r.redactorOf(set))
	}
	p.Mask(&r.route.set.Secrets)
	p.Sort()
}

// redactorOf returns the request's redactor for the rules of set.
func (r *request) redactorOf(set *ruleSet) *keytext.Redactor {
	if r.redact == nil || r.redact.Of() != set.redaction {
		r.redact = keytext.NewRedactor(set.redaction)
	}
	return r.redact
}

// appendRedactedPath appends the request's path redacted, since any part of it may be a value.
func (r *request) appendRedactedPath(dst []byte) []byte {
	r.params.text = base.AppendPath(r.params.text[:0], r.in.Path)
	return r.redactorOf(r.route.set).AppendPath(dst, unsafe.String(unsafe.SliceData(r.params.text), len(r.params.text)))
}

// plainText returns the text of one of the request's keys with plain values.
func (r *request) plainText(c *candidate, text []byte) []byte {
	params := &r.params.list
	if c.matcher != nil {
		params = &r.params.custom
	}
	r.plain = params.AppendPlainText(r.plain[:0], unsafe.String(unsafe.SliceData(text), len(text)))
	return r.plain
}

// callerName returns the request's caller as it may leave the process. Unless the application
// supplies it, the caller is an address, so it is redacted if addresses are. The result is valid
// until the next call.
func (r *request) callerName() string {
	set, caller := r.route.set, r.guard.callerOf(&r.in)
	if caller == "" || r.guard.opts.ownCaller || !set.redaction.Concerns(rules.Addr) {
		return caller
	}
	r.params.text = r.redactorOf(set).Append(r.params.text[:0], rules.Param{Source: rules.Addr, Name: "caller", Value: caller})
	return unsafe.String(unsafe.SliceData(r.params.text), len(r.params.text))
}
