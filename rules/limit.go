package rules

import (
	"fmt"
	"time"
)

// Limit is the limit of a key, or of all requests of a rule.
type Limit struct {
	Quota      // the zero Quota leaves Concurrency as the only bound
	Mode  Mode // treatment of requests over the limit: ModeLimit, ModeWait, ModeServe or ModeShadow

	// Scope selects the requests that share the limit. [Rule.ScopeOf] has the default.
	Scope Scope
	// Outage is the policy while the Redis that ScopeFleet and ScopeExact need is unavailable.
	// Empty means OutageLocal.
	Outage OutagePolicy
	// Wait is the longest time that a request waits, with ModeWait.
	Wait time.Duration
	// Concurrency is the number of requests that are served at a time. Zero means any number.
	// [AutoConcurrency] means the number that the aggregator finds, of all held keys of a back end together.
	Concurrency int
	// Cancel cancels the requests of a held key that run without a permit, with AutoConcurrency.
	Cancel bool
	// Queue is the number of requests that may wait for a place, with ModeWait. Zero means
	// DefaultQueue.
	Queue int
	// Priority orders the requests that wait. A nil Priority treats all alike.
	Priority *Priority
	// Serve is the response of ModeServe. If it is nil, the program sets a handler.
	Serve *Response
}

// Published returns the terms of the limit that are published with a hot key. A nil limit and one
// without bounds have ModeWatch. Rate and burst are zero for a limit of concurrency alone.
func (l *Limit) Published() (Rate, int64, Mode) {
	switch {
	case l == nil, l.Burst == Unlimited && l.Concurrency == 0:
		return Rate{}, 0, ModeWatch
	case l.Burst == Unlimited:
		return Rate{}, 0, l.Mode
	}
	return l.Rate, l.Burst, l.Mode
}

// HasNumber reports whether a limit has a number for any key, and not only for those that are held
// by their [Cost]. A nil limit has none.
func (l *Limit) HasNumber() bool {
	return l != nil && (l.Concurrency != AutoConcurrency || !l.Rate.IsZero())
}

// Mode is the treatment of the requests of a hot key.
type Mode string

// Modes of a hot key.
const (
	ModeLimit  Mode = "limit"  // requests over the limit are refused
	ModeShadow Mode = "shadow" // requests over the limit are counted, and pass
	ModeWait   Mode = "wait"   // requests over the limit wait for their turn, and are refused if that takes too long
	ModeServe  Mode = "serve"  // requests over the limit get a response that replaces the handler's
	ModeWatch  Mode = "watch"  // the rule has no limit
)

// Scope selects the requests that share a limit.
type Scope string

// Scopes.
const (
	ScopeInstance Scope = "instance" // the requests of one instance
	ScopeShare    Scope = "share"    // all requests; each live instance has an equal part of the rate
	ScopeFleet    Scope = "fleet"    // all requests; instances hold permits of the limit in advance
	ScopeExact    Scope = "exact"    // all requests; each of them asks Redis
)

// InRedis reports whether Redis has the state of limits with the scope.
func (s Scope) InRedis() bool { return s == ScopeFleet || s == ScopeExact }

// ScopeOf returns the scope of a limit of the rule, or of one of its exceptions. A limit of hot
// keys without a scope has ScopeFleet, unless WhyNotFleet has a reason. Others have
// ScopeInstance. A guard whose backend does not lend permits uses ScopeInstance in place of a
// ScopeFleet that is not written out.
func (r *Rule) ScopeOf(l *Limit) Scope {
	switch {
	case l.Scope != "":
		return l.Scope
	case len(r.Hot) == 0 || r.WhyNotFleet(l) != "":
		return ScopeInstance
	}
	return ScopeFleet
}

// fleetAlgorithms is the error of a limit with ScopeFleet and another algorithm.
const fleetAlgorithms = "goes with token_bucket, gcra and leaky_bucket, not with %s"

// WhyNotFleet returns the reason why a limit of the rule cannot have ScopeFleet, as the end of a
// sentence about it, or "" if it can.
func (r *Rule) WhyNotFleet(l *Limit) string {
	switch {
	case !l.Algorithm.Bucket():
		return fmt.Sprintf(fleetAlgorithms, l.Algorithm)
	case r.Count == Requests || r.Count > Units:
	case len(r.Hot) == 0:
		return fmt.Sprintf("with count: %s goes with hot", r.Count)
	case l.WarmUp > 0 || l.Priority != nil:
		return fmt.Sprintf("with count: %s goes with neither warm_up nor priority", r.Count)
	}
	return ""
}

// OutagePolicy is the policy for requests under ScopeFleet or ScopeExact while Redis is
// unavailable.
type OutagePolicy string

// Policies while Redis is unavailable.
const (
	OutageLocal  OutagePolicy = "local"  // each instance decides, with its part of the rate
	OutageOpen   OutagePolicy = "open"   // all pass
	OutageClosed OutagePolicy = "closed" // none pass
)

// Priority orders requests when there is not enough for all. First come those whose parameter has
// the first of the values, then the second, then all others. In a queue they overtake others. In
// a bucket of B permits, requests of class i (from 0) of n leave B × i / n untouched.
type Priority struct {
	Source Source // source of the parameter
	Name   string
	First  []string // values of the parameter, the most important first; 1 to MaxClasses-1
}

// Classes returns the number of classes of priority: those of the values in First, and one for all
// others. A nil Priority has one class.
func (p *Priority) Classes() int {
	if p == nil {
		return 1
	}
	return len(p.First) + 1
}

// Response is sent by a limit with ModeServe, instead of the handler's response.
type Response struct {
	Status int // 200 to 599
	Type   string
	Body   string
}

// Defaults and bounds of a limit.
const (
	DefaultQueue   = 1000
	MaxConcurrency = 1_000_000
	// AutoConcurrency is the Concurrency of keys that are hot by a [Cost].
	AutoConcurrency = -2
	MaxQueue        = 1_000_000
	maxWait         = 10 * time.Minute
	MaxClasses      = 10
	maxAnswer       = 64 << 10 // bytes of a Response's body
)

func (l *Limit) validate(unit Unit) (bad FieldErrors) {
	if l == nil {
		return nil
	}
	if l.Quota != (Quota{}) || l.Concurrency == 0 {
		bad = l.Quota.validate()
	}
	if l.Concurrency < 0 && l.Concurrency != AutoConcurrency || l.Concurrency > MaxConcurrency {
		bad.add("limit.concurrency", quoted(fmt.Sprint(l.Concurrency)), "concurrency: 8 serves eight requests at a time", "want a whole number of 1 to %d", MaxConcurrency)
	}
	if l.Queue < 0 || l.Queue > MaxQueue {
		bad.add("limit.queue", quoted(fmt.Sprint(l.Queue)), "queue: 100 lets a hundred requests wait", "want a whole number of 1 to %d", MaxQueue)
	}
	if l.Wait < 0 || l.Wait > maxWait {
		bad.add("limit.wait", l.Wait.String(), "for example 2s", wantSpan, time.Millisecond, maxWait)
	}
	l.validateWords(&bad)
	if len(bad) > 0 {
		return bad // combinations are checked once each field is valid
	}
	l.validateTogether(&bad)
	if len(bad) == 0 && (l.Quota != (Quota{}) || l.Concurrency == 0) {
		l.validateCost(&bad, unit)
	}
	if len(bad) == 0 {
		l.validateAnswers(&bad)
	}
	return bad
}

func (l *Limit) validateWords(bad *FieldErrors) {
	switch l.Mode {
	case ModeLimit, ModeShadow, ModeWait, ModeServe:
	default:
		bad.add("limit.on_limit", quoted(string(l.Mode)), "for example reject", "want %q, %q, %q or %q", ModeLimit, ModeWait, ModeServe, ModeShadow)
	}
	switch l.Scope {
	case "", ScopeInstance, ScopeShare, ScopeFleet, ScopeExact:
	default:
		bad.add("limit.scope", quoted(string(l.Scope)), scopeHint, "want %q, %q, %q or %q", ScopeInstance, ScopeShare, ScopeFleet, ScopeExact)
	}
	switch l.Outage {
	case "", OutageLocal, OutageOpen, OutageClosed:
	default:
		bad.add("limit.when_redis_is_away", quoted(string(l.Outage)), awayHint, "want %q, %q or %q", OutageLocal, OutageOpen, OutageClosed)
	}
}

const (
	scopeHint = "for example {rate: 50/s, scope: fleet}"
	awayHint  = "for example {rate: 50/s, scope: fleet, when_redis_is_away: local}"
	waitHint  = "for example {rate: 50/s, wait: 2s}"
)

// validateTogether reports fields that contradict each other.
func (l *Limit) validateTogether(bad *FieldErrors) {
	switch {
	case l.Outage != "" && !l.Scope.InRedis():
		bad.add("limit.when_redis_is_away", "", awayHint, "goes with scope: fleet or exact").needs("limit")
	case l.Scope == ScopeFleet && !l.Algorithm.Bucket():
		bad.add("limit.scope", quoted(string(l.Scope)), "scope: exact works with every algorithm", fleetAlgorithms, l.Algorithm).needs("limit")
	case (l.Mode == ModeWait) != (l.Wait != 0):
		bad.add("limit.wait", l.Wait.String(), waitHint, "goes with on_limit: wait, which needs it").needs("limit")
	case l.Queue != 0 && (l.Concurrency == 0 || l.Mode != ModeWait):
		bad.add("limit.queue", "", "for example {concurrency: 8, queue: 100, wait: 2s}", "goes with concurrency and wait").needs("limit")
	case l.Serve != nil && l.Mode != ModeServe:
		bad.add("limit.serve", "", serveHint, "goes with on_limit: serve").needs("limit")
	case l.Shape && l.Mode != ModeWait:
		bad.add("limit.shape", "", shapeHint, "needs wait: shaped requests wait for their turn").needs("limit")
	}
}

// validateCost reports settings that need a request's cost in advance, if the cost is known only
// after the request was served.
func (l *Limit) validateCost(bad *FieldErrors, unit Unit) {
	const requests = "goes with count: requests; the cost of a request is known at its end"
	var e *finding
	switch {
	case unit == Requests, unit > Units: // an unknown unit is reported for the rule
		return
	case l.Mode == ModeWait:
		e = bad.add("limit.wait", "", waitHint, requests)
	case l.Scope == ScopeExact:
		e = bad.add("limit.scope", "", scopeHint, "exact "+requests)
	case l.Penalty != 0:
		e = bad.add("limit.penalty", "", "for example {rate: 50/s, penalty: 30s}", requests)
	case l.CountDenied:
		e = bad.add("limit.count_denied", "", deniedHint, requests)
	default:
		return
	}
	e.needs("limit")
}

const serveHint = "for example {rate: 50/s, on_limit: serve, serve: {status: 200, body: \"[]\"}}"

// validateAnswers reports errors of the priority and of the response that replaces the handler's.
func (l *Limit) validateAnswers(bad *FieldErrors) {
	if p := l.Priority; p != nil && (p.Name == "" || len(p.First) < 1 || len(p.First) > MaxClasses-1) {
		bad.add("limit.priority", "", "for example priority: {by: tier, first: [gold, silver]}", "wants a parameter and 1 to %d of its values", MaxClasses-1).needs("limit")
	} else if p != nil {
		if message, hint := (Param{Source: p.Source, Name: p.Name}).CheckName(); message != "" {
			bad.add("limit.priority", quoted(p.Name), hint, "%s", message).needs("limit")
		}
	}
	a := l.Serve
	if a != nil && (a.Status < 200 || a.Status > 599) {
		bad.add("limit.serve.status", quoted(fmt.Sprint(a.Status)), `for example serve: {status: 200, type: application/json, body: "[]"}`, "want 200 to 599")
	}
	if a != nil && len(a.Body) > maxAnswer {
		bad.add("limit.serve.body", "", serveHint, "%d bytes, at most %d", len(a.Body), maxAnswer)
	}
}

// Bounds of [Rules.LimitKeys].
const (
	DefaultLimitKeys = 1 << 16
	MaxLimitKeys     = 1 << 24
)

// validateLimitKeys reports a number of keys that is out of bounds. Zero is valid and means the
// default.
func (r *Rules) validateLimitKeys() (bad FieldErrors) {
	if r.LimitKeys < 0 || r.LimitKeys > MaxLimitKeys {
		bad.add("max_keys", quoted(fmt.Sprint(r.LimitKeys)), "for example 65536, the default; each key in use takes about 100 bytes in each limit",
			"want 1 to %d", MaxLimitKeys).needs("max_keys")
	}
	return bad
}
