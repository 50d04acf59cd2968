package explain

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Document is the explanation of a request, in the JSON of the command and of a daemon.
type Document struct {
	// Matches are the ids of the matching rules, in the order in which they are evaluated.
	Matches []string `json:"matches"`
	// Keys are the keys of the request under these rules.
	Keys []KeyExplanation `json:"keys"`
	// Limits are the limits of rules without keys, which apply to all requests of the rule
	// together.
	Limits   []RuleLimit `json:"limits,omitempty"`
	Decision Decision    `json:"decision"`
	// Rule is the id of the deciding rule, if there is one.
	Rule string `json:"rule,omitempty"`
	// Why explains in sentences how the decision comes about, and which facts are unknown.
	Why []string `json:"why"`
	// Answer is the response to a refused request. It is null if the request passes, or is for a
	// resource that is not HTTP.
	Answer    *RefusalAnswer `json:"answer"`
	Namespace string         `json:"namespace"`
	// Version is the version of the rules.
	Version string `json:"version"`
}

// Decision is the outcome in one word.
type Decision string

// Decisions.
const (
	Pass   Decision = "pass"   // it passes regardless of other requests
	Limit  Decision = "limit"  // it passes until one of its limits is exhausted
	Refuse Decision = "refuse" // it is refused
	// Unknown means Limit or Pass, depending on whether a key with a limit is hot, which is
	// unknown.
	Unknown Decision = "unknown"
)

// RuleLimit is the limit of a rule without keys, in words.
type RuleLimit struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"`
}

// KeyExplanation is one key of the request.
type KeyExplanation struct {
	Key  string `json:"key"`
	Rule string `json:"rule"`
	// Hot is null if it is unknown, or if Always is set.
	Hot *bool `json:"hot"`
	// Always reports that the key's rule has no hot, so that its limit always applies.
	Always  bool        `json:"always,omitempty"`
	Control *KeyControl `json:"control"`
	// Exception is the action of an exception of the rule for the key: allow or block.
	Exception string `json:"exception,omitempty"`
	// Limit describes the key's limit in words. It applies while the key is hot, or always if its
	// rule has no hot.
	Limit string     `json:"limit,omitempty"`
	Rate  float64    `json:"rate,omitempty"` // rate of a hot key per second
	Since *time.Time `json:"since,omitempty"`
	// Hold describes how a key that is hot by its cost is held, and why.
	Hold string `json:"hold,omitempty"`
	// Spared reports that the key is hot and usual, and therefore not limited.
	Spared bool `json:"spared,omitempty"`
}

// KeyControl is a control that an operator has set on a key.
type KeyControl struct {
	Action string    `json:"action"`
	Until  time.Time `json:"until"`
	Why    string    `json:"why,omitempty"`
	By     string    `json:"by,omitempty"`
	// Claimed is the operator's name as reported by their program. It is not verified.
	Claimed string `json:"claimed,omitempty"`
}

// RefusalAnswer is the response to a refused request.
type RefusalAnswer struct {
	Status  int         `json:"status"`
	Headers http.Header `json:"headers"`
	Body    string      `json:"body"`
}

// Rules are the rules by which requests are explained, with their formatting.
type Rules struct {
	*rules.Rules
	// Fit shortens the text of a key as the sink of instances does. It may be nil.
	Fit func(text []byte) []byte
	// LimitWords describes a limit of a rule in words.
	LimitWords func(*rules.Rule, *rules.Limit) string
}

// placeholder matches the hash of a redacted value. If the redaction key is not the fleet's, the
// hash is not the fleet's either.
var placeholder = regexp.MustCompile(`hmac-[0-9a-f]{32}`)

// Explain explains a request.
func Explain(q RequestJSON, rules Rules, facts Facts) (Document, error) {
	in, err := q.guarded()
	if err != nil {
		return Document{}, err
	}
	foreign := len(rules.Redact.Names) > 0 && len(rules.Redact.Key) == 0
	ruleset := *rules.Rules
	if foreign {
		ruleset.Redact.Key = make([]byte, 32)
		_, _ = rand.Read(ruleset.Redact.Key) // never fails
	}
	x, err := middleware.Explain(in, facts.config(&ruleset, rules.Fit))
	if err != nil {
		return Document{}, err
	}
	d := Document{Matches: x.Matches, Keys: []KeyExplanation{}, Namespace: ruleset.Namespace, Version: ruleset.Version}
	if d.Matches == nil {
		d.Matches = []string{}
	}
	for i := range x.Keys {
		d.Keys = append(d.Keys, rules.key(&x.Keys[i], &facts, foreign))
	}
	for _, l := range x.Limits {
		d.Limits = append(d.Limits, RuleLimit{Rule: l.Rule, Limit: rules.limitWords(l.Rule, l.Limit)})
	}
	d.decide(&x)
	if q.Resource != "" {
		d.Answer = nil // the program makes its own answer
	}
	w := why{d: &d, x: &x, q: &q, in: in.HTTP, rules: &ruleset, facts: &facts, foreign: foreign}
	d.Why = w.sentences()
	return d, nil
}

// key returns a key in the form of the document.
func (r *Rules) key(x *middleware.ExplainedKey, facts *Facts, foreign bool) KeyExplanation {
	k := KeyExplanation{Key: x.Text, Rule: x.Rule, Control: facts.control(x.Key), Always: !x.Counted && x.Action == rules.Adjust}
	switch x.Action {
	case rules.Allow:
		k.Exception = "allow"
	case rules.Block:
		k.Exception = "block"
	}
	redacted := foreign && placeholder.MatchString(x.Text)
	if redacted {
		k.Key = placeholder.ReplaceAllString(x.Text, "hmac-?")
	}
	if x.Counted && facts.isKnown() && !redacted {
		hot := facts.isHot(x.Key)
		k.Hot = &hot
	}
	if x.Limit != nil {
		k.Limit = r.limitWords(x.Rule, x.Limit)
	}
	if x.Hot != nil {
		k.Rate, k.Spared = x.Hot.Rate, x.Hot.Spared
		if x.Hot.Hold != nil {
			k.Hold = hotwords.Hold(x.Hot.Hold)
		}
		if !x.Hot.Since.IsZero() {
			since := x.Hot.Since.UTC()
			k.Since = &since
		}
	}
	return k
}

func (r *Rules) limitWords(id string, l *rules.Limit) string {
	i := slices.IndexFunc(r.Rules.Rules, func(rule rules.Rule) bool { return rule.ID == id })
	return r.LimitWords(&r.Rules.Rules[i], l)
}

// decide sets the decision, its rule and the answer.
func (d *Document) decide(x *middleware.Explanation) {
	refused := &x.Over
	switch {
	case !x.Decision.Allowed:
		d.Decision, refused = Refuse, &x.Decision
	case x.Over.Allowed:
		d.Decision, d.Rule = Pass, x.Decision.Rule
		if slices.ContainsFunc(d.Keys, func(k KeyExplanation) bool { return k.Hot == nil && !k.Always && k.Limit != "" }) {
			d.Decision = Unknown
		}
		return
	default:
		d.Decision = Limit
	}
	d.Rule = refused.Rule
	a := refused.Answer()
	d.Answer = &RefusalAnswer{Status: a.Status, Headers: a.Header, Body: strings.TrimSuffix(string(a.Body), "\n")}
}
