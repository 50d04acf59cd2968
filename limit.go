package hotparam

import (
	"fmt"
	"strings"
	"time"
)

// Limit is what a key, or all of a rule's requests, are held to.
type Limit struct {
	Quota      // zero: no more than Concurrency holds
	Mode  Mode // what becomes of a request over the limit: ModeLimit, ModeWait, ModeServe or ModeShadow

	// Scope is whose requests share the limit; empty: ScopeInstance.
	Scope Scope
	// Away is what happens while the Redis that ScopeExact needs is away; empty:
	// AwayLocal.
	Away Away
	// Wait is the longest that a request waits, with ModeWait.
	Wait time.Duration
	// Concurrency is how many requests are served at a time; 0: any number.
	Concurrency int
	// Queue is how many more may wait for that, with ModeWait; 0: DefaultQueue.
	Queue int
	// Priority tells which requests come first; nil: all are alike.
	Priority *Priority
	// Serve is what ModeServe answers, unless code gives a handler; nil: code does.
	Serve *Answer
}

// Told is what the hot set tells of the limit; nil, or one that holds nobody, only
// watches. Rate and burst are zero where it is by concurrency alone.
func (l *Limit) Told() (Rate, int64, Mode) {
	switch {
	case l == nil, l.Burst == Unlimited && l.Concurrency == 0:
		return Rate{}, 0, ModeWatch
	case l.Burst == Unlimited:
		return Rate{}, 0, l.Mode
	}
	return l.Rate, l.Burst, l.Mode
}

// Scope is whose requests share a limit.
type Scope string

// Scopes.
const (
	ScopeInstance Scope = "instance" // those of one instance
	ScopeShare    Scope = "share"    // all: each instance has its part of the rate, by how many are alive
	ScopeExact    Scope = "exact"    // all: each request asks Redis
)

// Away is what becomes of requests under ScopeExact while Redis is away.
type Away string

// What is done while Redis is away.
const (
	AwayLocal  Away = "local"  // each instance decides, with its part of the rate
	AwayOpen   Away = "open"   // all pass
	AwayClosed Away = "closed" // none pass
)

// Priority tells which requests come first where there is not enough for all: those
// whose parameter has the first of the values, then the second, then all others.
// In a waiting line they overtake; of a bucket of B permits requests of class i (from
// 0) of n leave B × i / n untouched.
type Priority struct {
	Source Source // of the parameter
	Name   string
	First  []string // its values, the first first; 1 to MaxClasses-1
}

// Answer is a response that takes the place of a handler's.
type Answer struct {
	Status int // 200 to 599
	Type   string
	Body   string
}

// Defaults and bounds of a limit.
const (
	DefaultQueue   = 1000
	MaxConcurrency = 1_000_000
	MaxQueue       = 1_000_000
	MaxWait        = 10 * time.Minute
	MaxClasses     = 10
	MaxAnswer      = 64 << 10 // bytes of an answer's body
)

// LimitError tells what is wrong with a limit, by the name of the rules file's field.
type LimitError struct {
	Field  string // "burst", "serve.status"
	Reason string
}

func (e *LimitError) Error() string {
	if strings.HasPrefix(e.Reason, `"`) || e.Reason != "" && strings.ContainsAny(e.Reason[:1], "-0123456789") {
		return "limit." + e.Field + " " + e.Reason // it begins with the value
	}
	return "limit." + e.Field + ": " + e.Reason
}

func badLimit(field, format string, args ...any) error {
	return &LimitError{field, fmt.Sprintf(format, args...)}
}

// Validate tells what is wrong with a limit of a rule that counts in this unit: a
// [*LimitError]. Nil is good.
func (l *Limit) Validate(unit Unit) error {
	if l == nil {
		return nil
	}
	if l.Quota != (Quota{}) || l.Concurrency == 0 {
		if err := l.Quota.Validate(); err != nil {
			return err
		}
		if err := l.validateCost(unit); err != nil {
			return err
		}
	}
	switch {
	case l.Mode != ModeLimit && l.Mode != ModeShadow && l.Mode != ModeWait && l.Mode != ModeServe:
		return badLimit("on_limit", "%q: want %q, %q, %q or %q", l.Mode, ModeLimit, ModeWait, ModeServe, ModeShadow)
	case l.Scope != "" && l.Scope != ScopeInstance && l.Scope != ScopeShare && l.Scope != ScopeExact:
		return badLimit("scope", "%q: want %q, %q or %q", l.Scope, ScopeInstance, ScopeShare, ScopeExact)
	case l.Away != "" && l.Scope != ScopeExact:
		return badLimit("when_redis_is_away", "goes with scope: exact")
	case l.Away != "" && l.Away != AwayLocal && l.Away != AwayOpen && l.Away != AwayClosed:
		return badLimit("when_redis_is_away", "%q: want %q, %q or %q", l.Away, AwayLocal, AwayOpen, AwayClosed)
	case (l.Mode == ModeWait) != (l.Wait != 0):
		return badLimit("wait", "%v: goes with on_limit: wait, which needs it", l.Wait)
	case l.Wait < 0 || l.Wait > MaxWait:
		return badLimit("wait", "%v: must be positive and at most %v", l.Wait, MaxWait)
	case l.Concurrency < 0 || l.Concurrency > MaxConcurrency:
		return badLimit("concurrency", "%d: must be 1 to %d", l.Concurrency, MaxConcurrency)
	case l.Queue != 0 && (l.Concurrency == 0 || l.Mode != ModeWait):
		return badLimit("queue", "goes with concurrency and wait")
	case l.Queue < 0 || l.Queue > MaxQueue:
		return badLimit("queue", "%d: must be 1 to %d", l.Queue, MaxQueue)
	case l.Serve != nil && l.Mode != ModeServe:
		return badLimit("serve", "goes with on_limit: serve")
	case l.Shape && l.Mode != ModeWait:
		return badLimit("shape", "goes with wait: what is shaped has to wait for its turn")
	}
	if err := l.Priority.validate(); err != nil {
		return err
	}
	return l.Serve.validate()
}

// validateCost refuses what cannot be done where a request's cost is known only when
// it has been served.
func (l *Limit) validateCost(unit Unit) error {
	const requests = "goes with count: requests; what a request costs is known when it is done"
	switch {
	case unit == Requests:
	case l.Mode == ModeWait:
		return badLimit("wait", requests)
	case l.Scope == ScopeExact:
		return badLimit("scope", "exact "+requests)
	case l.Penalty != 0:
		return badLimit("penalty", requests)
	case l.CountDenied:
		return badLimit("count_denied", requests)
	}
	return nil
}

func (p *Priority) validate() error {
	if p == nil {
		return nil
	}
	if p.Name == "" || len(p.First) < 1 || len(p.First) > MaxClasses-1 {
		return badLimit("priority", "wants a parameter and 1 to %d of its values", MaxClasses-1)
	}
	return nil
}

func (a *Answer) validate() error {
	if a == nil {
		return nil
	}
	if a.Status < 200 || a.Status > 599 {
		return badLimit("serve.status", "%d: must be 200 to 599", a.Status)
	}
	if len(a.Body) > MaxAnswer {
		return badLimit("serve.body", "%d bytes, at most %d", len(a.Body), MaxAnswer)
	}
	return nil
}
