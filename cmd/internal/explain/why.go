package explain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// why composes the sentences of a document.
type why struct {
	d       *Document
	x       *middleware.Explanation
	q       *RequestJSON
	in      *http.Request
	rules   *rules.Rules
	facts   *Facts
	foreign bool // values are redacted with a random key, not with the fleet's
}

// sentences returns the reason for the decision, followed by the unknown facts.
func (w *why) sentences() []string {
	return slices.Concat([]string{w.decision()}, w.onHot(), w.counted(), w.unknown())
}

func (w *why) decision() string {
	d := &w.x.Decision
	switch {
	case len(w.d.Matches) == 0 && !d.Allowed:
		return "No rule matches, and no_match: deny refuses such requests."
	case len(w.d.Matches) == 0:
		return "No rule matches, so the request passes and is not counted."
	case d.Reason == rules.ReasonIgnored:
		return fmt.Sprintf("Rule %s has action: ignore, so the request passes and no rule counts it.", d.Rule)
	case d.Reason == rules.ReasonBlocked && w.controlled(published.ControlBlock):
		return fmt.Sprintf("An operator blocks a key of rule %s.", d.Rule)
	case d.Reason == rules.ReasonBlocked:
		return fmt.Sprintf("An exception of rule %s blocks the value.", d.Rule)
	case d.Reason == rules.ReasonUnread:
		return fmt.Sprintf("The body cannot be read, and rule %s has unread: reject.", d.Rule)
	case !d.Allowed && d.Reason == rules.ReasonBusy && w.held():
		return fmt.Sprintf("Rule %s holds a key that slows other keys down, and now serves none of its requests.", d.Rule)
	case !d.Allowed:
		return fmt.Sprintf("Rule %s refuses it (%s), even with its whole limit available.", d.Rule, d.Reason)
	case w.d.Decision == Limit:
		return fmt.Sprintf("It is allowed until a limit below is exhausted. Then rule %s refuses it.", w.d.Rule)
	case w.x.Over.Reason == rules.ReasonShadow:
		return fmt.Sprintf("Rule %s only counts requests over its limit (on_limit: shadow), so the request passes.", w.x.Over.Rule)
	case w.x.Over.Delay > 0:
		return fmt.Sprintf("Over the limit of rule %s it waits for its turn.", w.x.Over.Rule)
	case len(w.d.Keys) == 0:
		return "The request has none of the parameters of the matching rules, so it has no key and passes."
	}
	return w.notLimited()
}

// controlled reports whether an operator has set a control with this action on one of the keys.
func (w *why) controlled(action published.ControlAction) bool {
	return slices.ContainsFunc(w.d.Keys, func(k KeyExplanation) bool { return k.Control != nil && k.Control.Action == string(action) })
}

// held reports whether one of the keys is hot by its cost.
func (w *why) held() bool {
	return slices.ContainsFunc(w.d.Keys, func(k KeyExplanation) bool { return k.Hold != "" })
}

// limitedByCost reports whether the rule's limit has no number but for keys that are hot by their
// cost.
func (w *why) limitedByCost(id string) bool {
	return slices.ContainsFunc(w.rules.Rules, func(r rules.Rule) bool {
		return r.ID == id && r.Limit != nil && r.Limit.Concurrency == rules.AutoConcurrency
	})
}

// notLimited returns the reason why no limit applies to any of the keys.
func (w *why) notLimited() string {
	has := func(f func(*KeyExplanation) bool) bool {
		return slices.ContainsFunc(w.d.Keys, func(k KeyExplanation) bool { return f(&k) })
	}
	switch {
	case w.d.Decision == Unknown:
		return "It passes unless one of its keys is hot, which is unknown."
	case w.controlled(published.ControlAllow):
		return "An operator allows a key, so its rule counts the request and does not limit it."
	case has(func(k *KeyExplanation) bool { return k.Spared }):
		return "Its hot key is usual, and other hot keys explain its count, so it is spared."
	case w.held():
		return "A key may slow other keys down, and is not held: its rule has no limit, or the limit is in shadow mode."
	case has(func(k *KeyExplanation) bool { return k.Hot != nil && *k.Hot && w.limitedByCost(k.Rule) }):
		return "A key is hot, but not by its cost, so concurrency: auto has no number to hold it to."
	case has(func(k *KeyExplanation) bool { return k.Hot != nil && *k.Hot }):
		return "A key is hot, and its rule only lists it: it has no limit."
	case has(func(k *KeyExplanation) bool { return k.Exception == "allow" }):
		return "An exception allows the value, so it is neither counted nor limited."
	}
	return "None of its keys is hot, so it is counted and passes."
}

// counted describes parameters and bodies from which no separate key was made.
func (w *why) counted() (all []string) {
	if n := w.x.Withheld; n > 0 {
		all = append(all, fmt.Sprintf("%d of its parameters make no key, because their names look secret (section secrets).", n))
	}
	if w.x.More {
		all = append(all, fmt.Sprintf("It has more than %d keys of one rule; the rest is one key that ends in ~more.", rules.MaxKeys))
	}
	u := w.x.Unread
	for _, reason := range []struct {
		n     int64
		words string
	}{
		{u.TooLarge, "is larger than bodies.max"}, {u.Encoded, "is compressed"}, {u.Malformed, "is not what its Content-Type says"},
		{u.NoRoom, "found no room (bodies.total)"}, {u.Upgraded, "belongs to another protocol"}, {u.Failed, "ended early"},
	} {
		if reason.n > 0 {
			all = append(all, "Its body cannot be read: it "+reason.words+".")
		}
	}
	return all
}

// unknown describes the facts that the explanation lacks.
func (w *why) unknown() (all []string) {
	if !w.facts.isKnown() {
		all = append(all, "Whether keys are hot is not known: "+w.facts.Unknown+".")
	}
	if w.facts.NoControls != "" {
		all = append(all, "Which controls operators have set is not known: "+w.facts.NoControls+".")
	}
	if names := w.named(rules.Ctx); names != "" {
		all = append(all, names+" comes from the program itself and is not known here, so rules by it make no key of it.")
	}
	if names := w.named(rules.RPC); names != "" && w.q.Resource == "" {
		all = append(all, names+" is a field of an RPC's message and is not known here, so rules by it make no key of it.")
	}
	if names := w.named(rules.Addr); names != "" && w.x.Absent > 0 && w.q.Client == "" {
		all = append(all, names+": the client's address is not known; give it by --client.")
	}
	if w.foreign && slices.ContainsFunc(w.d.Keys, func(k KeyExplanation) bool { return strings.Contains(k.Key, "hmac-?") }) {
		all = append(all, "hmac-? represents a redacted value. Without the key of secrets.redact its text is unknown, and so is whether it is hot.")
	}
	if len(w.rules.Rules) > 0 && w.q.Route == "" && w.concrete() {
		all = append(all, "A rule for all routes has the path in its key; if the program's router has a pattern for it, give that by --route.")
	}
	return all
}

// named returns the parameters with this source in the matching rules.
func (w *why) named(source rules.Source) string {
	var names []string
	for i := range w.rules.Rules {
		rule := &w.rules.Rules[i]
		if !slices.Contains(w.d.Matches, rule.ID) {
			continue
		}
		for _, p := range rule.Named() {
			if name := p.Source.String() + ":" + p.Name; p.Source == source && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// concrete reports whether a matching rule makes keys with the request's own path.
func (w *why) concrete() bool {
	return slices.ContainsFunc(w.rules.Rules, func(r rules.Rule) bool {
		return slices.Contains(w.d.Matches, r.ID) && r.Match.Route.IsAny() && r.By.Kind != rules.ByNone && !r.ParamsOnly
	})
}
