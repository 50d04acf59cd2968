package aggregator

import (
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// generalized is the most parameters of a key whose more general keys are looked up. Their
// number is 2 to the power of it.
const generalized = rules.MaxCombined

// parse reports whether the parameters of a key are known.
func (r *ruleWatch) parse(w *watched) bool {
	if w.parsed {
		return len(w.params) > 0
	}
	w.parsed = true
	at := strings.LastIndexByte(w.text, '?') + 1
	if r.rule.ParamsOnly {
		at = 0
	}
	w.route = w.text[:at]
	if base.IsCutKey([]byte(w.text)) || at == 0 && !r.rule.ParamsOnly {
		return false
	}
	params := strings.Split(w.text[at:], "&")
	if len(params) > generalized {
		return false
	}
	w.params, w.names = params, nameSet(params, 1<<len(params)-1)
	return true
}

// nameOf returns the name of a parameter, with its source.
func nameOf(param string) string {
	name, _, _ := strings.Cut(param, "=")
	return name
}

// nameSet returns the names of a set of parameters.
func nameSet(params []string, set uint) string {
	var b strings.Builder
	for i, p := range params {
		if set&(1<<i) != 0 {
			b.WriteString(nameOf(p))
			b.WriteByte('&')
		}
	}
	return b.String()
}

// generals returns the keys that are more general than w.
func (r *ruleWatch) generals(w *watched) []general {
	if !r.combines || w.parsed && (w.general != nil || len(w.params) < 2 && len(r.levels) == 0) || !r.parse(w) {
		return w.general
	}
	for set := uint(1); set < 1<<len(w.params)-1; set++ {
		var b strings.Builder
		b.WriteString(w.route)
		for i, p := range w.params {
			if set&(1<<i) == 0 {
				continue
			}
			if b.Len() > len(w.route) {
				b.WriteByte('&')
			}
			b.WriteString(p)
		}
		text := b.String()
		if !slices.ContainsFunc(w.general, func(g general) bool { return g.text == text }) {
			w.general = append(w.general, general{text, set, nameSet(w.params, ^set)})
		}
	}
	r.addWider(w)
	return w.general
}

// hotKey returns the hot key with this text, or nil.
func (r *ruleWatch) hotKey(text string) *watched {
	if w := r.keys[text]; w != nil && w.hotMarks > 0 {
		return w
	}
	return nil
}

// hotGenerals calls f with each hot key that is more general than w, until f returns false.
func (r *ruleWatch) hotGenerals(w *watched, f func(*watched) bool) {
	all := r.generals(w)
	for i := range all {
		if g := r.hotKey(all[i].text); g != nil && !f(g) {
			return
		}
	}
}
