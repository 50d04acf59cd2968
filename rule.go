package hotparam

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Rules is one version of everything that decides: which requests count, when
// a key is hot, what then happens. It is read, never changed, once in use.
type Rules struct {
	// Namespace keeps the fleets of one Redis or one topic apart:
	// [A-Za-z0-9_-]+.
	Namespace string
	// Evaluate is which of the rules that match apply.
	Evaluate Evaluate
	// DenyNoMatch refuses requests that no rule matches.
	DenyNoMatch bool
	// Secrets tells which parameters never leave the process.
	Secrets Secrets
	// Rules in their order.
	Rules []Rule
	// Version names this version of the rules: a hash of their source.
	Version string
}

// Evaluate is which of the rules that match a request apply to it.
type Evaluate uint8

// Ways to evaluate.
const (
	EvaluateAll   Evaluate = iota // all of them; any denial denies
	EvaluateFirst                 // only the first
)

// Rule says which requests it is for, what makes a key, when a key is hot and
// what it is then held to.
type Rule struct {
	ID    string // [a-z0-9_-]+, unique
	Match Match
	// Ignore exempts the requests that match from all rules.
	Ignore bool
	By     By
	// Hot makes it a rule about hot keys; nil: Limit holds for every request
	// that matches.
	Hot *Threshold
	// Limit is what a key is held to; nil: hot keys are found and listed only.
	Limit *Limit
	// Prefix is the StatsD prefix of the rule's counts; empty:
	// "{namespace}.{rule id}".
	Prefix string
	// ParamsOnly leaves the route out of the key: "b=2&q=1".
	ParamsOnly bool
}

// Match tells which requests a rule is for.
type Match struct {
	// Route is "*" for all, a pattern in the manner of http.ServeMux
	// ("GET /u/{id}", "/static/"), or the name of a resource.
	Route Route
	// Query holds name → value that the query must have; in a value "*"
	// stands for any run of bytes.
	Query []QueryMatch
}

// QueryMatch is one parameter that the query must have.
type QueryMatch struct{ Name, Value string }

// By is which parameters make a rule's key.
type By struct {
	Kind  ByKind
	Names []Param // for ByNames: sources and names, values empty
}

// ByKind is the manner in which parameters make a key.
type ByKind uint8

// Kinds of By.
const (
	// ByNone: no key; the rule has one bucket. The default without Hot.
	ByNone ByKind = iota
	// ByAll: one key of all parameters. The default with Hot.
	ByAll
	// ByEach: one key for each parameter.
	ByEach
	// ByNames: one key of the named parameters; a missing one is left out, a
	// request with none of them makes no key.
	ByNames
)

// Threshold is when a key is hot and when it stops being so.
type Threshold struct {
	// Rate: hot when the count within a window of Rate.Per reaches Rate.N.
	Rate Rate
	// Exit is the count below which a hot key cools.
	Exit int64
	// Hold is the least time for which a key stays hot.
	Hold time.Duration
}

// Defaults of a [Threshold].
const (
	DefaultExit = 0.8 // of the threshold
	DefaultHold = 10 * time.Second
)

// Window is the window that the threshold is counted over.
func (t Threshold) Window() Window { return NewWindow(t.Rate.Per) }

// Limit is what a key, or all of a rule's requests, are held to.
type Limit struct {
	Rate  Rate
	Burst int64 // tokens a bucket holds; at least 1
	Mode  Mode  // ModeLimit or ModeShadow
}

// Windows are the windows of the rules about hot keys.
func (r *Rules) Windows() []Window {
	var windows []Window
	for i := range r.Rules {
		if h := r.Rules[i].Hot; h != nil {
			windows = append(windows, h.Window())
		}
	}
	return windows
}

// NewThreshold gives a threshold with the default exit and hold.
func NewThreshold(rate Rate) *Threshold {
	return &Threshold{Rate: rate, Exit: ExitCount(rate.N, DefaultExit), Hold: DefaultHold}
}

// ExitCount is the count below which a key cools, for a share of the
// threshold: at least 1, so that a silent key always cools.
func ExitCount(threshold int64, share float64) int64 {
	return max(1, int64(math.Ceil(float64(threshold)*share-1e-9)))
}

// Validate checks what a rules file cannot get wrong but code can.
func (r *Rules) Validate() error {
	if !validName(r.Namespace, true) {
		return fmt.Errorf("namespace %q: want one or more of A-Z a-z 0-9 _ -", r.Namespace)
	}
	seen := make(map[string]bool, len(r.Rules))
	prefixes := make(map[string]string, len(r.Rules)) // of counts → rule
	for i := range r.Rules {
		rule := &r.Rules[i]
		if err := rule.validate(); err != nil {
			return fmt.Errorf("rule %d (%q): %w", i+1, rule.ID, err)
		}
		if seen[rule.ID] {
			return fmt.Errorf("rule %d: id %q is used twice", i+1, rule.ID)
		}
		seen[rule.ID] = true
		if rule.Hot == nil {
			continue
		}
		prefix := rule.CountPrefix(r.Namespace)
		if other, ok := prefixes[prefix]; ok {
			return fmt.Errorf("rule %d (%q): its counts have the prefix %q, as those of %q: they could not be told apart", i+1, rule.ID, prefix, other)
		}
		prefixes[prefix] = rule.ID
	}
	return nil
}

// CountPrefix is the StatsD prefix of the rule's counts.
func (r *Rule) CountPrefix(namespace string) string {
	if r.Prefix != "" {
		return r.Prefix
	}
	return namespace + "." + r.ID
}

func (r *Rule) validate() error {
	switch {
	case !ValidRuleID(r.ID):
		return fmt.Errorf("id: want one or more of a-z 0-9 _ -")
	case r.Match.Route.IsZero():
		return fmt.Errorf("match.route is missing; use \"*\" for every request")
	case r.Ignore && (r.Hot != nil || r.Limit != nil):
		return fmt.Errorf("an ignore rule takes neither hot nor limit")
	case !r.Ignore && r.Hot == nil && r.Limit == nil:
		return fmt.Errorf("neither hot nor limit: the rule does nothing")
	case r.By.Kind == ByNames && len(r.By.Names) == 0:
		return fmt.Errorf("by: no names")
	case r.Prefix != "" && !validPrefix(r.Prefix):
		return fmt.Errorf("prefix %q: want words of A-Z a-z 0-9 _ - joined by dots, none of them hot_param", r.Prefix)
	case r.By.Kind == ByNone && r.Hot != nil:
		return fmt.Errorf("hot needs by: without parameters there is no key")
	}
	if h := r.Hot; h != nil {
		switch {
		case h.Rate.N < 1 || h.Rate.Per < MinWindow || h.Rate.Per > MaxWindow:
			return fmt.Errorf("hot.rate %q: the window must be %v to %v", h.Rate, MinWindow, MaxWindow)
		case h.Exit < 1 || h.Exit > h.Rate.N:
			return fmt.Errorf("hot.exit %d: must be 1 to the threshold's %d", h.Exit, h.Rate.N)
		case h.Hold < 0:
			return fmt.Errorf("hot.hold %v: must not be negative", h.Hold)
		}
	}
	if l := r.Limit; l != nil {
		switch {
		case l.Rate.N < 1 || l.Rate.Per <= 0 || l.Rate.PerSecond() > MaxRate:
			return fmt.Errorf("limit.rate %q: must be positive and at most %d per second", l.Rate, MaxRate)
		case l.Burst < 1:
			return fmt.Errorf("limit.burst %d: must be at least 1", l.Burst)
		case l.Burst > (1<<61)/tokenInterval(l.Rate):
			return fmt.Errorf("limit.burst %d: a bucket of so many tokens takes over 70 years to fill at %s", l.Burst, l.Rate)
		case l.Mode != ModeLimit && l.Mode != ModeShadow:
			return fmt.Errorf("limit mode %q: want %q or %q", l.Mode, ModeLimit, ModeShadow)
		}
	}
	return nil
}

// tokenInterval is the time that earns one token, in nanoseconds.
func tokenInterval(r Rate) int64 { return (int64(r.Per) + r.N - 1) / r.N }

// ValidNamespace tells whether s can be a namespace: [A-Za-z0-9_-]+.
func ValidNamespace(s string) bool { return validName(s, true) }

// ValidRuleID tells whether s can be a rule's id: [a-z0-9_-]+.
func ValidRuleID(s string) bool { return validName(s, false) }

// validPrefix tells whether s can stand before ".hot_param." in a line.
func validPrefix(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if !validName(word, true) || word == "hot_param" {
			return false
		}
	}
	return len(s) <= 2*maxName+1
}

// maxName bounds ids and namespaces, so that a StatsD line has room for a key.
const maxName = 64

func validName(s string, upper bool) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-':
		case upper && 'A' <= c && c <= 'Z':
		default:
			return false
		}
	}
	return true
}
