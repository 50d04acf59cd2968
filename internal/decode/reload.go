package decode

import (
	"slices"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Reload puts other rules in force, whose numbers are those of [Numbered.Next] of the current
// ones. Lines of a new rule are counted from now on. Lines of a removed rule count as lines
// without a rule. Reload must not be called while the decoder, or one that shares its senders,
// decodes. Each of those must be reloaded before its next packet.
//
// Senders may have the former rules or the new ones. The lines of a rule are recognized by its
// prefix. Sums by rule or by group are used only from senders with the same rules.
func (d *Decoder) Reload(n *Numbered) {
	d.compile(n)
	d.senders.reload(n)
}

// compile derives the decoder's data about the rules.
func (d *Decoder) compile(n *Numbered) {
	ruleset := n.byNumber
	d.head, d.alike, d.rules = lineHead{}, alike{}, make(map[string]lineHead)
	d.jumps, d.bytes, d.inBytes = make([]bool, len(ruleset.Rules)), make([]bool, len(ruleset.Rules)), false
	for i := range ruleset.Rules {
		rule := &ruleset.Rules[i]
		d.jumps[i], d.bytes[i] = rule.HasJump(), rule.Count == rules.Bytes
		d.inBytes = d.inBytes || d.bytes[i]
		if len(rule.Hot) > 0 {
			prefix := rule.CountPrefix(ruleset.Namespace)
			d.rules[prefix] = lineHead{string(wire.AppendKey([]byte(prefix), d.encoding, nil)), i, keytext.NewCanonicalizer(rule)}
		}
	}
}

// reload adapts the state of all senders to other rules.
func (s *senders) reload(n *Numbered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules == n { // a decoder that shares s has reloaded it
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
		// Packets until now were read without the new rules, so the beginning of an account
		// that was opened by then is unknown.
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

// reload computes the bounds for other rules. The maxima of a span that stays are kept. A new
// span starts with the highest values of the other spans, which are no lower than its own.
func (h *heldTotals) reload(ruleset *rules.Rules) {
	was := h.spans
	fresh := newHeld(ruleset)
	h.rules, h.spans = fresh.rules, fresh.spans
	for _, o := range h.holding {
		old := o.maxima
		o.maxima = make([]maxima, len(h.spans))
		for i := range h.spans {
			index := slices.IndexFunc(was, func(s heldSpan) bool { return s.slot == h.spans[i].slot })
			if index < 0 {
				o.raise(i, &h.spans[i], highest(old), h.decayed)
				continue
			}
			o.maxima[i] = old[index]
			h.spans[i].bound += o.maxima[i].bound
			if o.untold {
				h.spans[i].untold += o.maxima[i].bound
			}
		}
	}
	for i := range h.spans {
		h.spans[i].reported = [2]int64{-1, -1} // not reported to the new rules yet
	}
}

// highest returns the highest value of all maxima, and 1 at least.
func highest(all []maxima) (value int64) {
	value = 1
	for i := range all {
		for _, v := range all[i].values {
			value = max(value, v)
		}
	}
	return value
}
