package middleware

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/rules"
)

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
