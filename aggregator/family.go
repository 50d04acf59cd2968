package aggregator

import (
	"cmp"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// maxGeneralized is the most parameters of a key whose more general keys are looked up. Their
// number doubles with each parameter.
const maxGeneralized = rules.MaxCombined

// parse sets the route and the parameters of a key, once, and reports whether they are known.
func (r *ruleWatch) parse(w *watched) bool {
	if w.parsed {
		return len(w.params) > 0
	}
	w.parsed = true
	begin := strings.LastIndexByte(w.text, '?') + 1
	if r.rule.ParamsOnly {
		begin = 0
	}
	w.route = w.text[:begin]
	if base.IsCutKey([]byte(w.text)) || begin == 0 && !r.rule.ParamsOnly {
		return false
	}
	params := strings.Split(w.text[begin:], "&")
	if len(params) > maxGeneralized {
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
	if !r.combines || w.general != nil || !r.parse(w) {
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

// hotGenerals yields each hot key that is more general than w, and in what respect it is.
func (r *ruleWatch) hotGenerals(w *watched) iter.Seq2[*watched, *general] {
	return func(yield func(*watched, *general) bool) {
		all := r.generals(w)
		for i := range all {
			if g := r.hotKey(all[i].text); g != nil && !yield(g, &all[i]) {
				return
			}
		}
	}
}

// A key of a network is more general than a key of an address in it: all requests of the
// address are the network's. No key has both. So the keys with a wider level in place of the
// address are also more general.

// ruleLevel is a level of the address that a rule names.
type ruleLevel struct {
	base.AddrLevel
	name string
}

// levelsOf returns the levels that can replace each other in the rule's keys.
func levelsOf(rule *rules.Rule) (levels []ruleLevel) {
	for _, p := range rule.By.Names {
		if l, ok := base.ParseAddrLevel(p.Name); ok && p.Source == rules.Addr {
			levels = append(levels, ruleLevel{l, p.Name})
		}
	}
	if len(levels) < 2 {
		return nil
	}
	return levels
}

// addWider adds to the more general keys of w those in which a wider level of the address
// replaces the level that w has. Their set holds the parameters other than the address.
func (r *ruleWatch) addWider(w *watched) {
	if len(r.levels) == 0 {
		return
	}
	index := slices.IndexFunc(w.params, func(p string) bool { return strings.HasPrefix(p, "addr:") })
	if index < 0 {
		return
	}
	address, ok := readParam(w.params[index])
	if !ok {
		return
	}
	for set := range uint(1) << len(w.params) {
		if set&(1<<index) != 0 {
			continue
		}
		kept, good := make([]rules.Param, 0, len(w.params)), true
		for i, p := range w.params {
			if set&(1<<i) != 0 {
				q, ok := readParam(p)
				kept, good = append(kept, q), good && ok
			}
		}
		for _, l := range r.levels {
			wider, ok := l.Widen(address.Value)
			if !ok || !good {
				continue
			}
			network := rules.Param{Source: rules.Addr, Name: l.name, Value: wider}
			text := rules.Text("", append(slices.Clip(kept), network)...)
			w.general = append(w.general, general{w.route + strings.TrimPrefix(text, "?"), set, nameSet(w.params, ^set)})
		}
	}
}

// readParam reads "[source:]name=value" in canonical form.
func readParam(text string) (p rules.Param, ok bool) {
	name, value, _ := strings.Cut(text, "=")
	p = (&rules.QueryMatch{Name: name}).Param()
	var nameErr, valueErr error
	p.Name, nameErr = url.PathUnescape(p.Name)
	p.Value, valueErr = url.PathUnescape(value)
	return p, nameErr == nil && valueErr == nil
}

// compareWidth orders two keys with the same number of parameters: a network comes before the
// networks and addresses in it, since it has fewer more general keys.
func (r *ruleWatch) compareWidth(a, b *watched) int {
	if len(r.levels) == 0 {
		return 0
	}
	return cmp.Compare(len(r.generals(a)), len(r.generals(b)))
}
