package replay

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// Explanation says why a key was hot or not.
type Explanation struct {
	Event    string    `json:"event"` // "explanation"
	Rule     string    `json:"rule"`
	Key      string    `json:"key"`
	Counted  int64     `json:"counted"` // in all, in the rule's unit
	First    time.Time `json:"first"`   // count
	Last     time.Time `json:"last"`
	Hot      int       `json:"hot"`     // times
	Seconds  float64   `json:"seconds"` // hot, in all
	Limited  int64     `json:"limited"` // requests
	Allowed  bool      `json:"allowed"` // an exception says that it is never hot
	Listings []Step    `json:"listings"`

	Thresholds []Trial `json:"thresholds"`

	Source *rules.Rule `json:"-"`
}

// Trial is how a key stood with one threshold of its rule.
type Trial struct {
	Threshold string  `json:"threshold"`
	Window    float64 `json:"window_seconds"`
	Pane      float64 `json:"pane_seconds"`
	Hold      float64 `json:"hold_seconds"`
	CoolDown  float64 `json:"cool_down_seconds"`
	Steps     []Step  `json:"steps"`
	Panes     []Pane  `json:"panes"`
	// Omitted is how many panes there were besides: no more than a million are
	// kept.
	Omitted int64 `json:"panes_omitted"`

	Source *rules.Threshold `json:"-"`
}

// Step is one decision about the key.
type Step struct {
	Decision string    `json:"decision"` // "entered", "left", "explained", "listed", "usual", "unusual", "spared", "unspared"
	Time     time.Time `json:"time"`
	Low      int64     `json:"low"`
	High     *int64    `json:"high"` // null when unknown
	// Against is the count that was reached, or that was not any more.
	Against int64 `json:"against,omitempty"`
	// Hold is until when an entered key stays hot at least.
	Hold *time.Time `json:"hold_until,omitempty"`
	// By is the key that explains this one.
	By string `json:"by,omitempty"`
}

// Pane is how the key stood at the end of a pane.
type Pane struct {
	Time    time.Time `json:"time"`    // at which the pane began
	Counted int64     `json:"counted"` // in the pane
	Low     int64     `json:"low"`     // in the window that ends with it
	High    *int64    `json:"high"`    // null when unknown
	Enter   *int64    `json:"enter"`   // hot from this count on; null when that is not known
	Exit    int64     `json:"exit"`    // cool below it
	Hot     bool      `json:"hot"`     // by this threshold
	Listed  bool      `json:"listed"`  // and published
}

// maxPanes is how many panes are kept of a threshold.
const maxPanes = 1 << 20

// NoSuchKey is the error when no request had the key that is to be explained.
type NoSuchKey struct {
	Key     rules.Key
	Nearest []rules.Key // those that were there and look most like it
}

func (e *NoSuchKey) Error() string {
	key := e.Key.Text
	if e.Key.Rule != "" {
		key = e.Key.String()
	}
	return "no request had the key " + key
}

// explainer keeps account of one key.
type explainer struct {
	rules   *rules.Rules
	key     rules.Key
	nearest nearest
	byRule  map[string]*Explanation
}

func newExplainer(rules *rules.Rules, key rules.Key) *explainer {
	return &explainer{rules: rules.OfKeys(), key: key, nearest: nearest{to: key.Text}, byRule: make(map[string]*Explanation)}
}

// is reports whether a key is the one.
func (x *explainer) is(rule, text string) bool {
	return text == x.key.Text && (x.key.Rule == "" || x.key.Rule == rule)
}

// newKey notes a key that comes for the first time.
func (x *explainer) newKey(key rules.Key) {
	if !x.is(key.Rule, key.Text) {
		x.nearest.add(key)
	}
}

func (x *explainer) count(c *decode.Count) {
	rule := &x.rules.Rules[c.Rule]
	if !x.is(rule.ID, string(c.Text)) {
		return
	}
	e := x.of(rule)
	e.Counted += c.N
	at := c.When.UTC()
	if e.First.IsZero() || at.Before(e.First) {
		e.First = at
	}
	if at.After(e.Last) {
		e.Last = at
	}
}

// of is the explanation by a rule.
func (x *explainer) of(rule *rules.Rule) *Explanation {
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
			Threshold: t.Cause(rule.Count).String(), Window: (w.Pane * time.Duration(w.Panes)).Seconds(), Pane: w.Pane.Seconds(),
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

// known is a bound as JSON has it.
func known(n int64) *int64 {
	if n == rules.Unknown {
		return nil
	}
	return &n
}

func (x *explainer) decided(v aggregator.Verdict) {
	if !x.is(v.Rule, v.Text) {
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

func (x *explainer) account(a aggregator.Account) {
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

// pane is the widest pane of the rules' windows.
func (x *explainer) pane() (widest time.Duration) {
	for _, w := range x.rules.Windows() {
		widest = max(widest, w.Pane)
	}
	return widest
}

// end returns the explanations, in the order of the rules.
func (x *explainer) end(reports []KeyReport) (all []Explanation) {
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

// err returns the error of the key, if it has one.
func (x *explainer) err() error {
	if len(x.byRule) > 0 {
		return nil
	}
	return &NoSuchKey{Key: x.key, Nearest: x.nearest.keys()}
}
