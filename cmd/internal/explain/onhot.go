package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// onHot describes what the rule of a key does by on_hot while the key is hot: a key that is hot
// now, if there is one.
func (w *why) onHot() []string {
	if w.d.Decision == Refuse || w.q.Resource != "" { // only requests over HTTP are shared without code
		return nil
	}
	var key *middleware.ExplainedKey
	for i := range w.x.Keys {
		k := &w.x.Keys[i]
		if w.shares(k) && (key == nil || key.Hot == nil && k.Hot != nil) {
			key = k
		}
	}
	if key == nil {
		return nil
	}
	o := w.rule(key.Rule).OnHot
	while := "While its key is hot, on_hot of rule " + key.Rule
	if key.Hot != nil {
		while = "Its key is hot, and on_hot of rule " + key.Rule
	}
	policy := onhot.NewPolicy(*o)
	reason := policy.Refuses(w.in)
	if reason == onhot.ReasonNone && !w.rule(key.Rule).Match.Route.Covers(w.in.URL.EscapedPath()) {
		reason = onhot.ReasonRoute
	}
	if reason != onhot.ReasonNone {
		return []string{fmt.Sprintf("%s does not answer it together with others: %s.", while, refusals[reason])}
	}
	same := append([]string{"scheme", "host", "target", "accepted codings"}, o.Vary...)
	last := len(same) - 1
	return []string{fmt.Sprintf("%s answers it once for all requests with the same %s and %s, if the answer is for sharing; only runs of the handler ask the limit.", while, strings.Join(same[:last], ", "), same[last])}
}

// shares reports whether requests of the key are answered together while it is hot.
func (w *why) shares(k *middleware.ExplainedKey) bool {
	exempt := k.Hot != nil && k.Hot.IsExempt()
	return k.Counted && k.Control != published.ControlAllow && !exempt && w.rule(k.Rule).OnHot != nil
}

func (w *why) rule(id string) *rules.Rule {
	return &w.rules.Rules[slices.IndexFunc(w.rules.Rules, func(r rules.Rule) bool { return r.ID == id })]
}

// refusals has the reasons that a request itself may have, in words.
var refusals = map[onhot.Reason]string{
	onhot.ReasonMethod:         "only GET and HEAD are shared",
	onhot.ReasonBody:           "it has a body",
	onhot.ReasonAuthorization:  "it has Authorization or Proxy-Authorization, or a user in its URL",
	onhot.ReasonCertificate:    "its client has a certificate",
	onhot.ReasonCookie:         "it has cookies, and vary names none",
	onhot.ReasonRange:          "it requests a part (Range)",
	onhot.ReasonUpgrade:        "it requests another protocol (Upgrade)",
	onhot.ReasonCondition:      "only the handler can judge If-Match and If-Unmodified-Since",
	onhot.ReasonRequestNoCache: "its Cache-Control or Pragma demands a new answer",
	onhot.ReasonRequestNoStore: "its Cache-Control has no-store or cannot be read",
	onhot.ReasonLong:           "its target, and what vary names, are too long",
	onhot.ReasonRoute:          "its path is not one of the rule's route",
}
