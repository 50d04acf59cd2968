// Package sharing lets a guard answer identical requests of hot keys together: it has a cache of
// package onhot for each rule with on_hot, and changes it with the rules.
package sharing

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Answers keeps the answers to requests of hot keys. It implements [middleware.Sharer] and
// hotkeys.AnswerCache, and is safe for concurrent use.
type Answers struct {
	log *slog.Logger
	// invalidateTarget drops the answers to a target, here and wherever there are others.
	invalidateTarget func(id uint64)

	mu sync.Mutex // guards the rest; never held while a request is answered
	// inForce has the caches of the rules in force, by id, and next those of rules that are about to
	// be. If these are refused, they are dropped unused.
	inForce, next map[string]*ruleAnswers
	counters      map[string]*onhot.Counters[atomic.Int64] // counters by rule, which outlast the rule
}

// New returns Answers without rules.
func New(log *slog.Logger) *Answers {
	a := &Answers{log: log, inForce: make(map[string]*ruleAnswers), counters: make(map[string]*onhot.Counters[atomic.Int64])}
	a.invalidateTarget = a.InvalidateTarget
	return a
}

// OnInvalidate sets f, which then drops the answers to the target of a request that has changed
// something, instead of InvalidateTarget. It is called before the first request.
func (a *Answers) OnInvalidate(f func(target uint64)) { a.invalidateTarget = f }

// Invalidate implements [middleware.Sharer].
func (a *Answers) Invalidate(host, path, query string) {
	a.invalidateTarget(onhot.TargetID(host, path, query))
}

// ruleAnswers has the answers of one version of a rule. It implements [middleware.Sharing].
type ruleAnswers struct {
	rule   rules.Rule
	policy *onhot.Policy
	cache  *onhot.Cache
}

// isOf reports whether the answers are those of this version of the rule. It returns false for nil.
func (x *ruleAnswers) isOf(r *rules.Rule) bool { return x != nil && reflect.DeepEqual(x.rule, *r) }

// ForRule implements [middleware.Sharer].
func (a *Answers) ForRule(r *rules.Rule) (middleware.Sharing, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.inForce[r.ID]; x.isOf(r) {
		return x, nil
	}
	counters := a.counters[r.ID]
	if counters == nil {
		counters = new(onhot.Counters[atomic.Int64])
		a.counters[r.ID] = counters
	}
	policy := onhot.NewPolicy(*r.OnHot)
	cache, err := onhot.New(onhot.Config{Total: policy.Total, Log: a.log, Counters: counters})
	if err != nil {
		return nil, err
	}
	x := &ruleAnswers{rule: *r, policy: policy, cache: cache}
	if a.next == nil {
		a.next = make(map[string]*ruleAnswers)
	}
	a.next[r.ID] = x
	return x, nil
}

// Adopt puts the caches of these rules in force. It closes those of rules that have changed or gone.
// Requests that wait for an answer there then run the handler.
func (a *Answers) Adopt(ruleset *rules.Rules) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.inForce
	a.inForce = make(map[string]*ruleAnswers)
	for i := range ruleset.Rules {
		r := &ruleset.Rules[i]
		switch x := before[r.ID]; {
		case r.OnHot == nil:
		case x.isOf(r):
			a.inForce[r.ID] = x
			delete(before, r.ID)
		case a.next[r.ID] != nil:
			a.inForce[r.ID] = a.next[r.ID]
		}
	}
	a.next = nil
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, x := range before {
		_ = x.cache.Close(ended) // which cancels its handlers
	}
}

// Close closes all caches, and waits until the handlers that run for several requests have returned,
// or until ctx ends. Later requests go alone.
func (a *Answers) Close(ctx context.Context) (err error) {
	a.each(func(x *ruleAnswers) { err = errors.Join(err, x.cache.Close(ctx)) })
	return err
}

// each calls f for each cache in force.
func (a *Answers) each(f func(x *ruleAnswers)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.inForce {
		f(x)
	}
}

// invalidate calls f for each cache that may have answers. Those of rules that are about to be in
// force may be in use already.
func (a *Answers) invalidate(f func(c *onhot.Cache)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, caches := range []map[string]*ruleAnswers{a.inForce, a.next} {
		for _, x := range caches {
			f(x.cache)
		}
	}
}

// InvalidateTarget, InvalidateTag and Flush implement [hotkeys.AnswerCache].
func (a *Answers) InvalidateTarget(id uint64) {
	a.invalidate(func(c *onhot.Cache) { c.InvalidateTarget(id) })
}
func (a *Answers) InvalidateTag(id uint64) {
	a.invalidate(func(c *onhot.Cache) { c.InvalidateTag(id) })
}
func (a *Answers) Flush() { a.invalidate((*onhot.Cache).Flush) }

// outcomes has the outcome for each way in which the cache answers.
var outcomes = map[onhot.How]middleware.Outcome{
	onhot.Hit: middleware.Stored, onhot.Stale: middleware.Stored, onhot.Joined: middleware.Joined, onhot.Led: middleware.Led,
	onhot.Alone: middleware.Alone, onhot.Refused: middleware.Refused, onhot.Gone: middleware.Left,
}

// Share implements [middleware.Sharing]. A router, or middleware in front of it, may match a path to
// a pattern in ways of its own. The rule then matches by the pattern alone, and a request that
// changes the target may have another pattern. So no answer to such a path is kept.
func (x *ruleAnswers) Share(r *http.Request, key string, header http.Header, admit func(bool) (http.Handler, bool)) (shared middleware.Shared) {
	var res onhot.Result
	if x.rule.Match.Route.Covers(r.URL.EscapedPath()) {
		res = x.cache.Do(r, x.policy, key, admit)
	} else {
		res = x.cache.Refuse(onhot.ReasonRoute)
	}
	shared.Outcome = outcomes[res.How]
	if res.Shared() {
		shared.Status, shared.Body = res.Reply(r, header)
	} else if res.How == onhot.Alone {
		res.Explain(header)
		shared.Reason = res.Reason.String()
	}
	return shared
}

// Stats are the statistics of a rule with on_hot. The counters continue when the rules are
// reloaded.
type Stats struct {
	// Requests counts the requests of hot keys by how they were answered. "hit" and "stale" are from
	// memory. "joined" received the answer to another request, and "led" one that others received
	// too. "alone" were handled as without on_hot. The limit refused "refused", and the client of
	// "gone" left first.
	Requests map[string]int64
	Alone    map[string]int64 // requests that were answered alone, by reason
	// Refreshes counts runs of the handler that refreshed an answer already in use.
	Refreshes int64
	Panics    int64 // runs for several requests that panicked
	Entries   int   // answers in memory, and requests known to have none for sharing
	Bytes     int64 // memory of the answers
	Running   int   // handlers that run for several requests now
}

// Stats returns the statistics by rule.
func (a *Answers) Stats() map[string]Stats {
	all := make(map[string]Stats)
	a.each(func(x *ruleAnswers) {
		s := x.cache.Stats()
		out := Stats{
			Requests: make(map[string]int64), Alone: make(map[string]int64),
			Refreshes: s.Refreshes, Panics: s.Panics, Entries: s.Entries, Bytes: s.Bytes, Running: s.Leaders,
		}
		for _, how := range onhot.Hows() {
			out.Requests[how.String()] = s.How[how]
		}
		for _, reason := range onhot.Reasons() {
			out.Alone[reason.String()] = s.Alone[reason]
		}
		all[x.rule.ID] = out
	})
	return all
}
