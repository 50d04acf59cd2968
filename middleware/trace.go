package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// trace records how a guard decides on one request, for [Explain]. Requests that are served
// have none, so each recording step costs them one comparison with nil. A second
// implementation of matching just for explanations was rejected: it would explain itself.
type trace struct {
	explanation Explanation
	// usedUp makes the trace use up each limit before the request asks it.
	usedUp bool
}

// Explanation describes how a guard decides on a request.
type Explanation struct {
	// Matches are the ids of the rules that match and apply, in the order in which they are
	// asked.
	Matches []string
	// Keys are the keys that the rules make, each rule's in the order in which they are asked.
	Keys []ExplainedKey
	// Limits are the limits of rules that make no keys: one for all requests of the rule.
	Limits []ExplainedLimit
	// Decision is the decision on a request whose limits nothing else has used.
	Decision rules.Decision
	// Over is the decision while all limits that the request asks are used up. If it is
	// allowed, no limit applies, or a request over the limit only waits or is only counted.
	Over rules.Decision
	// Withheld counts parameters that make no key because they look secret. Absent counts
	// parameters that the request lacks and should have; see [Stats].
	Withheld, Absent int64
	// Unread has the reason why the body was not read, if a rule needs it.
	Unread Unread
	// More reports whether a rule made more than [rules.MaxKeys] keys.
	More bool
}

// ExplainedKey is a key that a rule makes from a request.
type ExplainedKey struct {
	rules.Key
	// Action is the action of the rule's exception for the key. With Allow and Block the key is
	// neither counted nor looked up.
	Action rules.Action
	// Control is the operator's control of the key, or empty. It precedes Action.
	Control published.ControlAction
	// Counted reports whether the key is counted, because the rule has hot.
	Counted bool
	// Hot is the key's entry among the hot keys, or nil.
	Hot *published.Hot
	// Limit limits the key's requests if the key is hot or the rule has no hot. It is nil if
	// nothing limits them.
	Limit *rules.Limit
}

// ExplainedLimit is the limit of a rule that makes no keys.
type ExplainedLimit struct {
	Rule  string
	Limit *rules.Limit
}

func (t *trace) addMatch(c *candidate) {
	t.explanation.Matches = append(t.explanation.Matches, c.ID)
}

// addLimit records the limit of a rule that makes no keys.
func (t *trace) addLimit(c *candidate) {
	t.explanation.Limits = append(t.explanation.Limits, ExplainedLimit{Rule: c.ID, Limit: c.spec.limit})
}

// addKey records a key, in its form in the hot set. hot is its entry there, or nil.
func (t *trace) addKey(c *candidate, key []byte, spec *limitSpec, hot *hotset.Entry[*hotState]) {
	k := ExplainedKey{Key: rules.Key{Rule: c.ID, Text: string(key[len(c.prefix):])}, Counted: len(c.Hot) > 0, Limit: spec.limit}
	if hot != nil {
		entry := hot.Hot
		k.Hot = &entry
	}
	t.explanation.Keys = append(t.explanation.Keys, k)
}

// addExcepted records a key that an exception allows or blocks.
func (t *trace) addExcepted(c *candidate, key []byte, action rules.Action) {
	t.explanation.Keys = append(t.explanation.Keys, ExplainedKey{
		Key: rules.Key{Rule: c.ID, Text: string(key[len(c.prefix):])}, Action: action,
	})
}

// addControlled records a key that its own control, or the control of another key of the
// request, exempts from its limit.
func (t *trace) addControlled(c *candidate, key []byte, action published.ControlAction, except rules.Action, hot *hotset.Entry[*hotState]) {
	t.addKey(c, key, &limitSpec{}, hot)
	k := &t.explanation.Keys[len(t.explanation.Keys)-1]
	k.Control = action
	if action == "" {
		k.Action = except
	}
}

// setControl records the control of the last key.
func (t *trace) setControl(action published.ControlAction) {
	t.explanation.Keys[len(t.explanation.Keys)-1].Control = action
}

// charge returns a charge that uses up a limit, including the tokens that requests may wait for.
func (t *trace) charge(l *rules.Limit) limiter.Request {
	ahead := int64(l.Rate.PerSecond() * l.Wait.Seconds())
	return limiter.Request{Kind: limiter.Charge, N: l.Burst + ahead}
}

// usesUp reports whether limits are used up first. It returns false for a nil trace.
func (t *trace) usesUp() bool { return t != nil && t.usedUp }

func (t *trace) beforeBucket(b *limiter.Bucket, now time.Duration, spec *limitSpec) {
	if t.usesUp() {
		b.Do(now, t.charge(spec.limit))
	}
}

func (t *trace) beforeKeyed(keys *limiter.Keys, now time.Duration, cl *claim, key []byte) {
	if t.usesUp() {
		keys.Do(now, cl.hash, key, t.charge(cl.spec.limit))
	}
}

// beforeBackend uses up the limits that the request is about to ask the backend for.
func (t *trace) beforeBackend(b limiter.Backend, claims []backendClaim) {
	if !t.usesUp() {
		return
	}
	for i := range claims {
		op := claims[i].op
		op.Request = t.charge(claims[i].spec.limit)
		_, _ = b.Do(context.Background(), op) // in memory
	}
}
