package hotkeys

import (
	"maps"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// Reload sets the ids of the rules that share the places, as in [PublisherConfig.Rules]. Keys of
// other rules cool at once, and their places go to keys that wait. It does not block.
func (p *Publisher) Reload(rules []string) {
	p.mu.Lock()
	changed := p.desired.reload(rules)
	p.suspected.shares = newSuspected(rules).shares
	p.mu.Unlock()
	if changed {
		base.Notify(p.wake)
	}
}

// reload divides the places between the given rules, and removes the keys of rules that are no
// longer among them. It reports whether the set to publish may have changed.
func (d *desired) reload(all []string) (changed bool) {
	was := d.shares
	d.shares = newGuarantees(d.cap, all)
	isGone := func(rule string) bool { return was[rule] != nil && d.shares[rule] == nil }
	var gone []rules.Key
	for _, w := range d.known {
		if isGone(w.Rule) {
			gone = append(gone, w.Key)
		}
	}
	for _, key := range gone {
		d.remove(key)
	}
	maps.DeleteFunc(d.overflow, func(rule string, _ uint64) bool { return isGone(rule) })
	for _, part := range d.reported {
		maps.DeleteFunc(part.hot, func(rule string, _ int) bool { return isGone(rule) })
	}
	d.stale = true
	return d.changed()
}
