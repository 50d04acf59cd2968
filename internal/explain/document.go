package explain

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Document is what is said about a request, in the JSON of the command and of a daemon.
type Document struct {
	// Matches are the ids of the rules that match, in the order in which they are asked.
	Matches []string `json:"matches"`
	// Keys are those that these rules make.
	Keys []Key `json:"keys"`
	// Limits are those of rules that make no keys, which hold all requests of the rule together.
	Limits   []RuleLimit `json:"limits,omitempty"`
	Decision Decision    `json:"decision"`
	// Rule is that which decides, if there is one.
	Rule string `json:"rule,omitempty"`
	// Why says in sentences how the decision comes about, and what is not known.
	Why []string `json:"why"`
	// Answer is what a refused request gets. It is null if the request passes, or is for a
	// resource that is not HTTP.
	Answer    *Answer `json:"answer"`
	Namespace string  `json:"namespace"`
	// Version is that of the rules.
	Version string `json:"version"`
}

// Decision is the outcome in a word.
type Decision string

// Decisions.
const (
	Pass   Decision = "pass"   // it passes, whatever comes beside it
	Limit  Decision = "limit"  // it passes while its limits have room, and is refused beyond
	Refuse Decision = "refuse" // it is refused
	// Unknown is neither Limit nor Pass: it is not known whether a key with a limit is hot.
	Unknown Decision = "unknown"
)

// RuleLimit is the limit of a rule without keys, in words.
type RuleLimit struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"`
}

// Key is one key of the request.
type Key struct {
	Key  string `json:"key"`
	Rule string `json:"rule"`
	// Hot is null if it is not known, and if Always is set.
	Hot *bool `json:"hot"`
	// Always reports that the key's rule has no hot, so that its limit always applies.
	Always  bool     `json:"always,omitempty"`
	Control *Control `json:"control"`
	// Exception is what an exception of the rule says of the key: allow or block.
	Exception string `json:"exception,omitempty"`
	// Limit is what the key is held to while it is hot, or always if its rule has no hot, in
	// words.
	Limit string     `json:"limit,omitempty"`
	Rate  float64    `json:"rate,omitempty"` // of a hot key, per second
	Since *time.Time `json:"since,omitempty"`
	// Spared reports that the key is hot and usual, and so not limited.
	Spared bool `json:"spared,omitempty"`
}

// Control is what an operator has said about a key for some time.
type Control struct {
	Action string    `json:"action"`
	Until  time.Time `json:"until"`
	Why    string    `json:"why,omitempty"`
	By     string    `json:"by,omitempty"`
	// Claimed is who the operator's program says they are, which nothing proves.
	Claimed string `json:"claimed,omitempty"`
}

// Answer is the response to a refused request.
type Answer struct {
	Status  int         `json:"status"`
	Headers http.Header `json:"headers"`
	Body    string      `json:"body"`
}

// Rules are what requests are explained by.
type Rules struct {
	*rules.Rules
	// Fit shortens the text of a key as the sink of instances does. It may be nil.
	Fit func(text []byte) []byte
	// LimitWords returns a limit in words.
	LimitWords func(*rules.Limit, rules.Unit) string
}

// placeholder stands for the digits of a value that was redacted by a key that is not the
// fleet's.
var placeholder = regexp.MustCompile(`hmac-[0-9a-f]{32}`)

// Explain explains a request.
func Explain(q Request, rules Rules, facts Facts) (Document, error) {
	in, err := q.guarded()
	if err != nil {
		return Document{}, err
	}
	foreign := len(rules.Redact.Names) > 0 && len(rules.Redact.Key) == 0
	own := *rules.Rules
	if foreign {
		own.Redact.Key = make([]byte, 32)
		_, _ = rand.Read(own.Redact.Key) // never fails
	}
	x, err := middleware.Explain(in, facts.config(&own, rules.Fit))
	if err != nil {
		return Document{}, err
	}
	d := Document{Matches: x.Matches, Keys: []Key{}, Namespace: own.Namespace, Version: own.Version}
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
		d.Answer = nil // its program makes one of its own
	}
	w := why{d: &d, x: &x, q: &q, rules: &own, facts: &facts, foreign: foreign}
	d.Why = w.sentences()
	return d, nil
}

// key returns a key as the document has it.
func (r *Rules) key(x *middleware.ExplainedKey, facts *Facts, foreign bool) Key {
	k := Key{Key: x.Text, Rule: x.Rule, Control: facts.control(x.Key), Always: !x.Counted && x.Action == rules.Adjust}
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
	if x.Counted && facts.known() && !redacted {
		hot := facts.isHot(x.Key)
		k.Hot = &hot
	}
	if x.Limit != nil {
		k.Limit = r.limitWords(x.Rule, x.Limit)
	}
	if x.Hot != nil {
		k.Rate, k.Spared = x.Hot.Rate, x.Hot.Spared
		if !x.Hot.Since.IsZero() {
			since := x.Hot.Since.UTC()
			k.Since = &since
		}
	}
	return k
}

func (r *Rules) limitWords(id string, l *rules.Limit) string {
	at := slices.IndexFunc(r.Rules.Rules, func(rule rules.Rule) bool { return rule.ID == id })
	return r.LimitWords(l, r.Rules.Rules[at].Count)
}

// decide sets the outcome.
func (d *Document) decide(x *middleware.Explanation) {
	refused := &x.Over
	switch {
	case !x.Decision.Allowed:
		d.Decision, refused = Refuse, &x.Decision
	case x.Over.Allowed:
		d.Decision, d.Rule = Pass, x.Decision.Rule
		if slices.ContainsFunc(d.Keys, func(k Key) bool { return k.Hot == nil && !k.Always && k.Limit != "" }) {
			d.Decision = Unknown
		}
		return
	default:
		d.Decision = Limit
	}
	d.Rule = refused.Rule
	a := refused.Answer()
	d.Answer = &Answer{Status: a.Status, Headers: a.Header, Body: strings.TrimSuffix(string(a.Body), "\n")}
}
