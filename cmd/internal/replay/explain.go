package replay

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Explanation explains why a key was hot or not.
type Explanation struct {
	Event    string    `json:"event"` // "explanation"
	Rule     string    `json:"rule"`
	Key      string    `json:"key"`
	Counted  int64     `json:"counted"` // total, in the rule's unit
	First    time.Time `json:"first"`   // time of the first count
	Last     time.Time `json:"last"`
	Hot      int       `json:"hot"`     // number of times
	Seconds  float64   `json:"seconds"` // total time hot
	Limited  int64     `json:"limited"` // number of requests
	Allowed  bool      `json:"allowed"` // whether an exception keeps it from ever being hot
	Listings []Step    `json:"listings"`

	Thresholds []Trial `json:"thresholds"`

	Source *rules.Rule `json:"-"`
}

// Trial is the history of a key under one threshold of its rule.
type Trial struct {
	Threshold string  `json:"threshold"`
	Window    float64 `json:"window_seconds"`
	Pane      float64 `json:"pane_seconds"`
	Hold      float64 `json:"hold_seconds"`
	CoolDown  float64 `json:"cool_down_seconds"`
	Steps     []Step  `json:"steps"`
	Panes     []Pane  `json:"panes"`
	// Omitted is the number of further panes. At most maxPanes panes are kept.
	Omitted int64 `json:"panes_omitted"`

	Source *rules.Threshold `json:"-"`
}

// Step is one decision about the key.
type Step struct {
	Decision string    `json:"decision"` // "entered", "left", "explained", "listed", "usual", "unusual", "spared", "unspared"
	Time     time.Time `json:"time"`
	Low      int64     `json:"low"`
	High     *int64    `json:"high"` // null if unknown
	// Against is the count that was reached, or no longer reached.
	Against int64 `json:"against,omitempty"`
	// Hold is the earliest time at which an entered key can cool.
	Hold *time.Time `json:"hold_until,omitempty"`
	// By is the key that explains this one.
	By string `json:"by,omitempty"`
}

// Pane is the state of the key at the end of a pane.
type Pane struct {
	Time    time.Time `json:"time"`    // start of the pane
	Counted int64     `json:"counted"` // count in the pane
	Low     int64     `json:"low"`     // count in the window that ends with the pane
	High    *int64    `json:"high"`    // null if unknown
	Enter   *int64    `json:"enter"`   // count from which it is hot; null if unknown
	Exit    int64     `json:"exit"`    // count below which it cools
	Hot     bool      `json:"hot"`     // whether it is hot by this threshold
	Listed  bool      `json:"listed"`  // whether it is also published
}

// maxPanes bounds the panes that are kept for a threshold.
const maxPanes = 1 << 20

// NoSuchKey is the error if no request had the key to explain.
type NoSuchKey struct {
	Key     rules.Key
	Nearest []rules.Key // the most similar keys in the log
}

func (e *NoSuchKey) Error() string {
	key := e.Key.Text
	if e.Key.Rule != "" {
		key = e.Key.String()
	}
	return "no request had the key " + key
}

// explainer collects the explanations of one key.
type explainer struct {
	rules   *rules.Rules
	key     rules.Key
	nearest nearest
	byRule  map[string]*Explanation
}

func newExplainer(rules *rules.Rules, key rules.Key) *explainer {
	return &explainer{rules: rules.OfKeys(), key: key, nearest: nearest{to: key.Text}, byRule: make(map[string]*Explanation)}
}

// matches reports whether a key is the one to explain.
func (x *explainer) matches(rule, text string) bool {
	return text == x.key.Text && (x.key.Rule == "" || x.key.Rule == rule)
}

// newKey records a key at its first count.
func (x *explainer) newKey(key rules.Key) {
	if !x.matches(key.Rule, key.Text) {
		x.nearest.add(key)
	}
}

func (x *explainer) count(c *decode.Count) {
	rule := &x.rules.Rules[c.Rule]
	if !x.matches(rule.ID, string(c.Text)) {
		return
	}
	e := x.explanationOf(rule)
	e.Counted += c.N
	when := c.When.UTC()
	if e.First.IsZero() || when.Before(e.First) {
		e.First = when
	}
	if when.After(e.Last) {
		e.Last = when
	}
}

// explanationOf returns the explanation for a rule. It creates one if there is none.
func (x *explainer) explanationOf(rule *rules.Rule) *Explanation {
	if e := x.byRule[rule.ID]; e != nil {
		return e
	}
	e := &Explanation{Event: "explanation", Rule: rule.ID, Key: x.key.Text, Source: rule, Listings: []Step{}}
	if except := rule.Exception(x.key.Text); except != nil {
		e.Allowed = except.Action == rules.Allow
	}
	for i := range rule.Hot {
		t := &rule.Hot[i]
		w := t.Window()
		e.Thresholds = append(e.Thresholds, Trial{
			Threshold: published.CauseOf(t, rule.Count).String(), Window: (w.Pane * time.Duration(w.Panes)).Seconds(), Pane: w.Pane.Seconds(),
			Hold: t.Hold.Seconds(), CoolDown: t.CoolDown.Seconds(), Source: t, Steps: []Step{}, Panes: []Pane{},
		})
	}
	x.byRule[rule.ID] = e
	return e
}

func (e *Explanation) trial(t *rules.Threshold) *Trial {
	i := slices.IndexFunc(e.Thresholds, func(x Trial) bool { return x.Source == t })
	return &e.Thresholds[i]
}

// known returns a bound in the form for JSON: nil if it is unknown.
func known(n int64) *int64 {
	if n == published.Unknown {
		return nil
	}
	return &n
}

func (x *explainer) decided(v aggregator.Verdict) {
	if !x.matches(v.Rule, v.Text) {
		return
	}
	e := x.byRule[v.Rule]
	s := Step{Decision: v.Kind.String(), Time: v.At.UTC(), Low: v.Low, High: known(v.High), Against: v.Against, By: v.By}
	switch v.Kind {
	case aggregator.Entered:
		hold := v.Hold.UTC()
		s.Hold = &hold
		fallthrough
	case aggregator.Left:
		t := e.trial(v.Threshold)
		t.Steps = append(t.Steps, s)
	default:
		e.Listings = append(e.Listings, s)
	}
}

func (x *explainer) addPane(a aggregator.Account) {
	t := x.byRule[a.Rule].trial(a.Threshold)
	if len(t.Panes) >= maxPanes {
		t.Omitted++
		return
	}
	t.Panes = append(t.Panes, Pane{
		Time: a.Start.UTC(), Counted: a.Counted, Low: a.Low, High: known(a.High),
		Enter: known(a.Enter), Exit: a.Exit, Hot: a.Hot, Listed: a.Listed,
	})
}

// pane returns the widest pane of the rules' windows.
func (x *explainer) pane() (widest time.Duration) {
	for _, w := range x.rules.Windows() {
		widest = max(widest, w.Pane)
	}
	return widest
}

// explanations returns the explanations, in the order of the rules.
func (x *explainer) explanations(reports []KeyReport) (all []Explanation) {
	for i := range x.rules.Rules {
		e := x.byRule[x.rules.Rules[i].ID]
		if e == nil {
			continue
		}
		for _, r := range reports {
			if r.Rule == e.Rule && r.Key == e.Key {
				e.Hot, e.Seconds, e.Limited = r.Hot, r.Seconds, r.Limited
			}
		}
		all = append(all, *e)
	}
	return all
}

// err returns a NoSuchKey error if no rule counted the key.
func (x *explainer) err() error {
	if len(x.byRule) > 0 {
		return nil
	}
	return &NoSuchKey{Key: x.key, Nearest: x.nearest.keys()}
}
