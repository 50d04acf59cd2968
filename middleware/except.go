package middleware

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/rules"
)

// exceptions are the exceptions of one rule, indexed by parameters of the key's text.
type exceptions struct {
	list []exception
	// exact holds the indices of exceptions that have a value without "*", by one such
	// parameter in canonical form. starred holds the other indices. Both are in order.
	exact   map[string][]int
	starred []int
}

type exception struct {
	*rules.Exception
	spec *limitSpec // the rule's own, unless the exception sets another limit
}

func newExceptions(list []exception) *exceptions {
	e := &exceptions{list: list, exact: make(map[string][]int)}
	for i := range list {
		j := slices.IndexFunc(list[i].Values, func(v rules.QueryMatch) bool { return !strings.Contains(v.Value, "*") })
		if j < 0 {
			e.starred = append(e.starred, i)
			continue
		}
		p := list[i].Values[j].Param()
		p.Value = list[i].Values[j].Value
		param := strings.TrimPrefix(rules.Text("", p), "?")
		e.exact[param] = append(e.exact[param], i)
	}
	return e
}

// firstMatch returns the first exception that matches the key with this text, or nil if none
// does. The text must not be cut.
func (e *exceptions) firstMatch(text []byte) *exception {
	first := len(e.list)
	whole := unsafe.String(unsafe.SliceData(text), len(text)) // used during this call only
	try := func(list []int) {
		for _, i := range list {
			if i >= first {
				return
			}
			if e.list[i].MatchesText(whole) {
				first = i
			}
		}
	}
	params := text[bytes.LastIndexByte(text, '?')+1:]
	for len(e.exact) > 0 && len(params) > 0 {
		param := params
		if i := bytes.IndexByte(params, '&'); i >= 0 {
			param, params = params[:i], params[i+1:]
		} else {
			params = nil
		}
		try(e.exact[string(param)])
	}
	try(e.starred)
	if first == len(e.list) {
		return nil
	}
	return &e.list[first]
}

// findException returns the exception for the request's key, which must not be cut, or nil.
func (r *request) findException(c *candidate) *exception {
	text := r.key[len(c.prefix):]
	if c.reveals {
		text = r.plainText(c, text)
	}
	return c.except.firstMatch(text)
}

// except returns the limit of the request's key: the limit of an exception, or the rule's own.
// It returns nil if an exception allows or blocks the key.
func (r *request) except(c *candidate) *limitSpec {
	x := r.findException(c)
	if r.trace != nil && x != nil && x.Action != 0 {
		r.trace.addExcepted(c, r.key, x.Action)
	}
	switch {
	case x == nil:
		return c.spec
	case x.Action == rules.Allow:
		return nil
	case x.Action == rules.Block && !r.asks:
		r.postponeRefusal()
		return nil
	case x.Action == rules.Block:
		r.addDenial(&claim{rule: c, spec: c.spec}, &rules.Decision{Reason: rules.ReasonBlocked, Rule: c.ID})
		return nil
	}
	return x.spec
}
