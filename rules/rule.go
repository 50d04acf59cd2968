package rules

import (
	"cmp"
	"slices"
	"time"
)

// Rules is one version of the rules: which requests count, when a key is hot, and how it is then
// limited. Once in use it is read but never changed.
type Rules struct {
	// Namespace keeps the fleets of one Redis or one topic apart:
	// [A-Za-z0-9_-]+.
	Namespace string
	// Evaluate selects which of the matching rules apply.
	Evaluate Evaluate
	// DenyNoMatch refuses requests that no rule matches.
	DenyNoMatch bool
	// Secrets decides which parameters never leave the process.
	Secrets Secrets
	// Redact lists the parameters whose values never leave the process.
	Redact Redact
	// Client decides which address is the client's.
	Client Client
	// Bodies bounds the bodies that are read for rules.
	Bodies Bodies
	// LimitKeys is the number of keys each limit has places for in a process: max_keys in the
	// rules file. Zero means [DefaultLimitKeys].
	LimitKeys int
	// Rules are the rules, in the order of the file.
	Rules []Rule
	// Version identifies the rules: a hash of every setting in their file that affects decisions.
	Version string
}

// Evaluate selects which of the rules that match a request apply to it.
type Evaluate uint8

// Ways to evaluate.
const (
	EvaluateAll   Evaluate = iota // every one; any denial denies
	EvaluateFirst                 // only the first
)

// Rule selects requests, makes keys of them, and defines when a key is hot and which limit it
// then has.
type Rule struct {
	ID    string // [a-z0-9_-]+, unique
	Match Match
	// Ignore exempts the requests that match from all rules.
	Ignore bool
	By     By
	// Unread is how the rule treats requests whose body cannot be read, if its keys or its match
	// depend on the body.
	Unread Unread
	// Count is the quantity that a request adds to its keys' counts.
	Count Unit
	// Hot holds the thresholds of hot keys, each with its own window. A key is hot when it
	// reaches any of them. With an empty Hot, Limit applies to every request that matches.
	Hot []Threshold
	// Limit is the limit of each key, in units of Count. With a nil Limit hot keys are only found
	// and listed.
	Limit *Limit
	// Backend names what serves the rule's requests, for thresholds of kind [Cost]: the rules of one
	// back end are judged together. Empty means that the rule has one of its own, see [Rule.Pool].
	Backend string
	// OnHot says how requests of hot keys are answered before Limit is asked. Nil asks Limit for
	// each.
	OnHot *OnHot
	// Except sets other terms for some values. The first exception that matches applies.
	Except []Exception
	// Prefix is the StatsD prefix of the rule's counts. Empty means "{namespace}.{rule id}".
	Prefix string
	// ParamsOnly leaves the route out of the key: "b=2&q=1".
	ParamsOnly bool
}

// Match selects the requests of a rule.
type Match struct {
	// Route is "*" for all requests, a pattern as in http.ServeMux ("GET /u/{id}", "/static/"),
	// or the name of a resource.
	Route Route
	// Query holds the parameters that the request must have.
	Query []QueryMatch
}

// QueryMatch is one parameter that a request or a key must have. The name is written as in the
// rules file: "q", "query:q" or "path:id"; see [QueryMatch.Param]. A "*" in the value matches any
// run of bytes.
type QueryMatch struct{ Name, Value string }

// By selects the parameters that make a rule's keys.
type By struct {
	Kind  ByKind
	Names []Param // sources and names without values, for ByNames and ByCombinations
}

// ByKind is the way in which parameters make a key.
type ByKind uint8

// Kinds of By.
const (
	// ByNone makes no key; the rule has one bucket. The default without Hot.
	ByNone ByKind = iota
	// ByAll makes one key of all parameters. The default with Hot.
	ByAll
	// ByEach makes one key for each parameter, and for each of its values if it is repeated. See
	// [MaxKeys].
	ByEach
	// ByNames makes one key of the named parameters, or one for each pairing of their values if
	// some are repeated. A missing parameter is left out; a request with none of them makes no
	// key. See [MaxKeys].
	ByNames
	// ByCombinations makes a key for each set of up to three parameters, of the named ones or of
	// all. So the most general key that explains the traffic can be found.
	ByCombinations
)

// Bounds of the keys that [ByCombinations] derives from a request.
const (
	MaxCombination = 3 // parameters of one key
	MaxCombined    = 4 // parameters that a rule can name
)

// MaxKeys is the most keys that a rule by each parameter or by names derives from one request. A
// rule by combinations makes up to 28, but takes further values of a repeated name only while its
// parameters stay within MaxKeys.
const MaxKeys = 8

// Unit is the quantity of a request that a rule counts.
type Unit uint8

// Units.
const (
	Requests Unit = iota // 1 each
	Bytes                // the size of the response's body
	Millis               // the handler's time, in whole milliseconds, rounded up
	Units                // the cost that the handler reports for the request
)

var unitNames = [...]string{"requests", "bytes", "ms", "units"}

// String returns the unit as the rules file writes it.
func (u Unit) String() string { return nameOf(unitNames[:], u) }

// nameOf returns the name of a value among those of its type.
func nameOf[T ~uint8](names []string, value T) string {
	if int(value) < len(names) {
		return names[value]
	}
	return "invalid"
}

// Threshold defines when a key becomes hot and when it cools.
type Threshold struct {
	Kind ThresholdKind
	// Rate is the count that makes a key hot: Rate.N within a window of Rate.Per. For the kinds
	// that compare, Rate.N is the least count; no key with a lower count is hot.
	Rate Rate
	// Factor is the part of the whole for [Share], above 0 and at most 1, and the multiple of the
	// baseline for [Jump], above 1.
	Factor Fraction
	// Over selects the past that makes the baseline of a [Jump].
	Over Over
	// Top is the number of keys that are hot at a time, for [Top].
	Top int
	// Exit is the part of the count needed to become hot below which a hot key cools, above 0 and
	// at most 1. It applies to Rate.N, to an exception's rate, and to the count a key is compared
	// with. It is not a count itself, since a small Rate.N would round it for all of them.
	Exit Fraction
	// Hold is the least time for which a key stays hot.
	Hold time.Duration
	// CoolDown is how long a key must stay below the exit to cool.
	CoolDown time.Duration
}

// ExitCount returns the count below which a hot key cools if it needed n to become hot. It is at
// least 1, so that a silent key always cools.
func (t *Threshold) ExitCount(n int64) int64 { return max(1, ScaleUp(n, t.Exit)) }

// Exception sets other terms for the keys of a rule that have certain values.
type Exception struct {
	// Values are names and values that the key's parameters must all have. A name is "q",
	// "query:q" or "path:id", and one that the rule's keys can have. A "*" in a value matches any
	// run of bytes.
	Values []QueryMatch
	// Action is what the rule does with the request.
	Action Action
	// Rate replaces the rule's absolute threshold over a window of the same length, with its exit
	// in proportion. Zero keeps the rule's.
	Rate Rate
	// Limit replaces the rule's limit. Nil keeps the rule's.
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
	// DefaultCoolDown is longer than the pauses of traffic that comes in waves. It also covers
	// the chance that a count close to the threshold falls below the exit.
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

// ShareLimits reports whether some limit is shared by all instances, which needs Redis.
func (r *Rules) ShareLimits() bool {
	return slices.ContainsFunc(r.Rules, func(r Rule) bool {
		shared := func(l *Limit) bool { return l != nil && r.ScopeOf(l) != ScopeInstance }
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

// Whole reports whether all of the rule's keys must be counted in one place. They must if keys
// are compared with each other, or if one key can explain another.
func (r *Rule) Whole() bool {
	return r.By.Kind == ByCombinations || slices.ContainsFunc(r.Hot, func(t Threshold) bool { return t.Kind == Share || t.Kind == Top || t.Kind == Cost })
}

// HasCost reports whether some threshold finds keys by their cost.
func (r *Rule) HasCost() bool {
	return slices.ContainsFunc(r.Hot, func(t Threshold) bool { return t.Kind == Cost })
}

// Pool names the requests that a rule with a cost judges together: its Backend, or its ID.
func (r *Rule) Pool() string { return cmp.Or(r.Backend, r.ID) }

// Home names the place where all keys of a rule that is [Rule.Whole] are counted: the rules of one
// pool have one place.
func (r *Rule) Home(namespace string) string {
	if r.HasCost() {
		return namespace + ".." + r.Pool()
	}
	return r.CountPrefix(namespace)
}

// Named returns the parameters that the rule names, without values: those of its keys, its match
// and the priorities of its limits.
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

// Overlaps reports whether the rule finds hot keys and one request can make several of them, so
// that it counts for each.
func (r *Rule) Overlaps() bool {
	return len(r.Hot) > 0 && (r.By.Kind == ByEach || r.By.Kind == ByCombinations)
}

// SameKeys reports whether r makes the same keys of a request as other does.
func (r *Rule) SameKeys(other *Rule) bool {
	return r.ParamsOnly == other.ParamsOnly && r.By.Kind == other.By.Kind && slices.Equal(r.By.Names, other.By.Names)
}

// HasShare reports whether some threshold compares keys with the others of their group.
func (r *Rule) HasShare() bool {
	return slices.ContainsFunc(r.Hot, func(t Threshold) bool { return t.Kind == Share })
}

// HasJump reports whether some threshold compares keys with their own past.
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
