package aggregator

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// A key of a network is more general than a key of an address in it: all requests of the
// address are the network's. No key has both. So the keys with a wider level in place of the
// address are also more general.

// level is a level of the address that a rule names.
type level struct {
	base.AddrLevel
	name string
}

// levelsOf returns the levels that can replace each other in the rule's keys.
func levelsOf(rule *rules.Rule) (levels []level) {
	for _, p := range rule.By.Names {
		if l, ok := base.ParseAddrLevel(p.Name); ok && p.Source == rules.Addr {
			levels = append(levels, level{l, p.Name})
		}
	}
	if len(levels) < 2 {
		return nil
	}
	return levels
}

// addWider adds to the more general keys of w those in which a wider level of the address
// replaces the level that w has. Their set has the other parameters.
func (r *ruleWatch) addWider(w *watched) {
	at := slices.IndexFunc(w.params, func(p string) bool { return strings.HasPrefix(p, "addr:") })
	if len(r.levels) == 0 || at < 0 {
		return
	}
	address, ok := readParam(w.params[at])
	if !ok {
		return
	}
	for set := range uint(1) << len(w.params) {
		if set&(1<<at) != 0 {
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
	var bad, worse error
	p.Name, bad = url.PathUnescape(p.Name)
	p.Value, worse = url.PathUnescape(value)
	return p, bad == nil && worse == nil
}

// compareWidth orders two keys with the same number of parameters: a network comes before the
// networks and addresses in it, since it has fewer more general keys.
func (r *ruleWatch) compareWidth(a, b *watched) int {
	if len(r.levels) == 0 {
		return 0
	}
	return cmp.Compare(len(r.generals(a)), len(r.generals(b)))
}
