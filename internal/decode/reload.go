package decode

import (
	"slices"

	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Reload puts other rules in force, whose numbers are those of [Numbered.Next] of the present
// ones. Lines of a new rule are counted from now on, and those of a rule that is gone are
// counted as of no rule. It must not be called while the decoder, or one that shares its
// senders, decodes; each of those is reloaded before the next packet.
//
// Senders may have the former rules or the new ones: a rule's lines are known by its prefix,
// and what a sender states by rule or by group is used while its rules are ours.
func (d *Decoder) Reload(n *Numbered) {
	d.compile(n)
	d.senders.reload(n)
}

// compile makes what the decoder knows of rules.
func (d *Decoder) compile(n *Numbered) {
	ruleset := n.byNumber
	d.head, d.alike, d.rules = lineHead{}, alike{}, make(map[string]lineHead)
	d.bytes, d.inBytes = byteRules(ruleset)
	d.jumps = make([]bool, len(ruleset.Rules))
	for i := range ruleset.Rules {
		d.jumps[i] = ruleset.Rules[i].HasJump()
		if rule := &ruleset.Rules[i]; len(rule.Hot) > 0 {
			prefix := rule.CountPrefix(ruleset.Namespace)
			d.rules[prefix] = lineHead{string(wire.AppendKey([]byte(prefix), d.encoding, nil)), i, rules.NewCanonicalizer(rule)}
		}
	}
}

// reload makes the state of all senders fit other rules.
func (s *senders) reload(n *Numbered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules == n { // of another decoder
		return
	}
	before := s.rules
	s.rules = n
	s.keep = Lookback(n.inOrder) + heldGrace
	s.groups = wire.GroupsMark(n.inOrder)
	jumps := wire.JumpsMark(n.inOrder)
	jumpsStay := jumps == s.jumps
	s.jumps = jumps
	s.held.reload(n.byNumber)
	ruled := newRuled(n)
	sumsStay := ruled.mark == s.ruled.mark && slices.Equal(ruled.numbers, s.ruled.numbers)
	s.ruled = ruled
	for _, known := range s.byName {
		a := &known.accounts
		if !sumsStay {
			a.rules = ruleSums{}
			a.opening.forgetRules()
		}
		if !jumpsStay {
			a.buckets, a.statement = nil, 0
		}
		// Packets until now were read without the new rules, so an account that had been
		// opened by then has no beginning.
		a.opened = max(a.opened, a.sums.Opened)
		for key, k := range a.keys {
			if !before.Has(int(key.rule)) || !n.Has(int(key.rule)) {
				a.opened = max(a.opened, k.number)
				delete(a.keys, key)
				s.accountsLeft++
			}
		}
	}
}

// reload makes the bounds of other rules. Those of a time that stays are kept. Of a new one
// the present values are known, which are no lower than the highest of the other times.
func (h *heldTotals) reload(ruleset *rules.Rules) {
	was := h.spans
	fresh := newHeld(ruleset)
	h.rules, h.spans = fresh.rules, fresh.spans
	for _, o := range h.holding {
		old := o.maxima
		o.maxima = make([]maxima, len(h.spans))
		for i := range h.spans {
			at := slices.IndexFunc(was, func(s heldSpan) bool { return s.slot == h.spans[i].slot })
			if at >= 0 {
				o.maxima[i] = old[at]
			} else {
				o.maxima[i] = newMaxima(rules.Window{Pane: h.spans[i].slot}.Index(h.decayed), highest(old))
			}
			h.spans[i].bound += o.maxima[i].bound
			if o.untold {
				h.spans[i].untold += o.maxima[i].bound
			}
		}
	}
	for i := range h.spans {
		h.spans[i].reported = [2]int64{-1, -1} // to rules that have not heard of it
	}
}

// newMaxima returns maxima of one value.
func newMaxima(at, value int64) maxima {
	m := maxima{newest: at, bound: 2 * (value - 1)}
	for i := range m.values {
		m.values[i] = 1
	}
	m.values[ring.Slot(at, heldSlots)] = value
	return m
}

// highest returns the highest value of all times.
func highest(all []maxima) (value int64) {
	value = 1
	for i := range all {
		for _, v := range all[i].values {
			value = max(value, v)
		}
	}
	return value
}
