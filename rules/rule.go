package rules

import (
	"slices"
	"time"
)

// Rules is one version of everything that decides: which requests count, when
// a key is hot, what then happens. It is read, never changed, once in use.
type Rules struct {
	// Namespace keeps the fleets of one Redis or one topic apart:
	// [A-Za-z0-9_-]+.
	Namespace string
	// Evaluate selects which of the matching rules apply.
	Evaluate Evaluate
	// DenyNoMatch refuses requests that no rule matches.
	DenyNoMatch bool
	// Secrets are the parameters that never leave the process.
	Secrets Secrets
	// Redact are the parameters whose values never leave the process.
	Redact Redact
	// Client says which address is the client's.
	Client Client
	// Bodies bounds the bodies that are read for rules.
	Bodies Bodies
	// LimitKeys is how many keys each limit has places for in a process: max_keys of the file.
	// Zero means [DefaultLimitKeys].
	LimitKeys int
	// Rules in their order.
	Rules []Rule
	// Version identifies the rules: a hash of all that decides in the file that they are of.
	Version string
}

// Evaluate selects which of the rules that match a request apply to it.
type Evaluate uint8

// Ways to evaluate.
const (
	EvaluateAll   Evaluate = iota // all of them; any denial denies
	EvaluateFirst                 // only the first
)

// Rule selects requests, makes keys of them, and says when a key is hot and which limit
// it then has.
type Rule struct {
	ID    string // [a-z0-9_-]+, unique
	Match Match
	// Ignore exempts the requests that match from all rules.
	Ignore bool
	By     By
	// Unread is what becomes of requests whose body cannot be read, if the rule's keys or
	// its match depend on it.
	Unread Unread
	// Count is what a request adds to its keys' counts.
	Count Unit
	// Hot are the thresholds of hot keys, each with a window of its own: a key is hot
	// when it reaches any of them. With an empty Hot, Limit applies to every request
	// that matches.
	Hot []Threshold
	// Limit is that of each key, in units of Count. With a nil Limit hot keys are only
	// found and listed.
	Limit *Limit
	// Except sets other terms for some values. The first that matches applies.
	Except []Exception
	// Prefix is the StatsD prefix of the rule's counts; empty:
	// "{namespace}.{rule id}".
	Prefix string
	// ParamsOnly leaves the route out of the key: "b=2&q=1".
	ParamsOnly bool
}

// Match selects the requests of a rule.
type Match struct {
	// Route is "*" for all, a pattern in the manner of http.ServeMux
	// ("GET /u/{id}", "/static/"), or the name of a resource.
	Route Route
	// Query holds the parameters that the request must have.
	Query []QueryMatch
}

// QueryMatch is one parameter that a request or a key must have. The name is written as
// rules write it, "q", "query:q" or "path:id"; see [QueryMatch.Param]. In the value "*"
// stands for any run of bytes.
type QueryMatch struct{ Name, Value string }

// By selects the parameters that make a rule's keys.
type By struct {
	Kind  ByKind
	Names []Param // for ByNames and ByCombinations: sources and names, values empty
}

// ByKind is the manner in which parameters make a key.
type ByKind uint8

// Kinds of By.
const (
	// ByNone: no key; the rule has one bucket. The default without Hot.
	ByNone ByKind = iota
	// ByAll: one key of all parameters. The default with Hot.
	ByAll
	// ByEach: one key for each parameter, and for each of its values if it is
	// repeated. See [MaxKeys].
	ByEach
	// ByNames: one key of the named parameters, or one for each pairing of their
	// values if some are repeated; a missing one is left out, a request with none of
	// them makes no key. See [MaxKeys].
	ByNames
	// ByCombinations: a key for each set of up to three of the named
	// parameters, or of all, so that the most general key that explains the
	// traffic can be found.
	ByCombinations
)

// Bounds of what [ByCombinations] makes of a request.
const (
	maxCombination = 3 // parameters of one key
	MaxCombined    = 4 // parameters that a rule can name
	// maxCombinationKeys is how many keys a request makes. Seven parameters have as
	// many combinations of one and two.
	maxCombinationKeys = 28
)

// Unit is the quantity that a rule counts of a request.
type Unit uint8

// Units.
const (
	Requests Unit = iota // 1
	Bytes                // of the response's body
	Millis               // the handler's time, in whole milliseconds, rounded up
	Units                // what the handler says that the request cost
)

var unitNames = [...]string{"requests", "bytes", "ms", "units"}

// String returns the unit as the rules file writes it.
func (u Unit) String() string {
	if int(u) < len(unitNames) {
		return unitNames[u]
	}
	return "invalid"
}

// ParseUnit reads what [Unit.String] writes.
func ParseUnit(s string) (Unit, bool) {
	at := slices.Index(unitNames[:], s)
	return Unit(max(0, at)), at >= 0
}

// Threshold is when a key is hot and when it stops being so.
type Threshold struct {
	Kind Kind
	// Rate: hot when the count within a window of Rate.Per reaches Rate.N. For
	// the kinds that compare it is the least count, below which nothing is hot.
	Rate Rate
	// Factor is the part of the whole for [Share], above 0 and at most 1; the
	// multiple of the baseline for [Jump], above 1.
	Factor Fraction
	// Over says what makes the baseline of a [Jump].
	Over Over
	// Top is how many keys are hot at a time for [Top].
	Top int
	// Exit is the part of what a key needs to become hot below which a hot key cools,
	// above 0 and at most 1: of Rate.N, of the rate of an exception, of what a key is
	// compared with. It is no count, since a small Rate.N would round it for all of them.
	Exit Fraction
	// Hold is the least time for which a key stays hot.
	Hold time.Duration
	// CoolDown is how long a key must stay below the exit to cool.
	CoolDown time.Duration
}

// ExitCount returns the count below which a hot key cools that needed n: at least 1, so
// that a silent key always cools.
func (t *Threshold) ExitCount(n int64) int64 { return max(1, Portion(n, t.Exit)) }

// Exception sets other terms for the keys of a rule that have certain values.
type Exception struct {
	// Values are names and values that the key's parameters must all have. A name
	// is "q", "query:q" or "path:id", one that the rule's keys can have; in a value
	// "*" stands for any run of bytes.
	Values []QueryMatch
	// Action is what the rule does with the request.
	Action Action
	// Rate takes the place of the rule's absolute threshold over a window of the
	// same length, with its exit in proportion. Zero keeps the rule's.
	Rate Rate
	// Limit takes the place of the rule's limit. Nil keeps the rule's.
	Limit *Limit
}

// Action is what an exception does.
type Action uint8

// Actions.
const (
	Adjust Action = iota // other terms
	Allow                // never counted, never limited by the rule
	Block                // always refused
)

// Defaults of a [Threshold].
const (
	defaultExitPercent = 80 // of the threshold
	DefaultHold        = 10 * time.Second
	// DefaultCoolDown outlasts the pauses of a crowd that comes in waves, and the
	// chance by which a count that stays about the threshold falls below the exit.
	DefaultCoolDown = 5 * time.Second
)

// Bounds of a [Rule] and its thresholds.
const (
	maxThresholds = 8    // of one rule
	MaxExceptions = 1000 // of one rule
	maxFactor     = 1e6  // of a jump
	MaxTop        = 1000 // keys
)

// Window returns the window that the threshold is counted over.
func (t *Threshold) Window() Window { return NewWindow(t.Rate.Per) }

// Windows returns the windows of the rules with thresholds.
func (r *Rules) Windows() []Window {
	var windows []Window
	for i := range r.Rules {
		for j := range r.Rules[i].Hot {
			windows = append(windows, r.Rules[i].Hot[j].Window())
		}
	}
	return windows
}

// ShareLimits reports whether a limit holds all instances together, which needs Redis.
func (r *Rules) ShareLimits() bool {
	shared := func(l *Limit) bool { return l != nil && (l.Scope == ScopeShare || l.Scope == ScopeExact) }
	return slices.ContainsFunc(r.Rules, func(r Rule) bool {
		return shared(r.Limit) || slices.ContainsFunc(r.Except, func(x Exception) bool { return shared(x.Limit) })
	})
}

// NewThreshold returns an absolute threshold with the defaults.
func NewThreshold(rate Rate) Threshold { return Threshold{Rate: rate}.WithDefaults() }

// WithDefaults returns the threshold with the default exit, hold and cool-down.
func (t Threshold) WithDefaults() Threshold {
	t.Exit, t.Hold, t.CoolDown = Percent(defaultExitPercent), DefaultHold, DefaultCoolDown
	return t
}

// Whole reports whether all of the rule's keys must be counted in one place: those
// that are compared with each other, and those of which one explains another.
func (r *Rule) Whole() bool {
	if r.By.Kind == ByCombinations {
		return true
	}
	for i := range r.Hot {
		if kind := r.Hot[i].Kind; kind == Share || kind == Top {
			return true
		}
	}
	return false
}

// Named returns the parameters that the rule names, without values: of its keys, of its match
// and of the priorities of its limits.
func (r *Rule) Named() []Param {
	all := slices.Clone(r.By.Names)
	for i := range r.Match.Query {
		all = append(all, r.Match.Query[i].Param())
	}
	limits := []*Limit{r.Limit}
	for i := range r.Except {
		limits = append(limits, r.Except[i].Limit)
	}
	for _, l := range limits {
		if l != nil && l.Priority != nil {
			all = append(all, Param{Source: l.Priority.Source, Name: l.Priority.Name})
		}
	}
	return all
}

// Overlaps reports whether the rule finds hot keys of which a request makes
// several, so that one request counts for all of them.
func (r *Rule) Overlaps() bool {
	return len(r.Hot) > 0 && (r.By.Kind == ByEach || r.By.Kind == ByCombinations)
}

// SameKeys reports whether r makes the same keys of a request as other.
func (r *Rule) SameKeys(other *Rule) bool {
	return r.ParamsOnly == other.ParamsOnly && r.By.Kind == other.By.Kind && slices.Equal(r.By.Names, other.By.Names)
}

// HasShare reports whether some threshold compares keys with the others of their group.
func (r *Rule) HasShare() bool {
	return slices.ContainsFunc(r.Hot, func(t Threshold) bool { return t.Kind == Share })
}

// HasJump reports whether some threshold compares keys with what they were before.
func (r *Rule) HasJump() bool {
	return slices.ContainsFunc(r.Hot, func(t Threshold) bool { return t.Kind == Jump })
}

// CountPrefix returns the StatsD prefix of the rule's counts.
func (r *Rule) CountPrefix(namespace string) string {
	if r.Prefix != "" {
		return r.Prefix
	}
	return namespace + "." + r.ID
}
