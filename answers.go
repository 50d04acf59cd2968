package hotparam

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// answers keeps the answers to requests of hot keys, those of each rule with on_hot in a cache of
// its own. It implements [middleware.Sharer].
type answers struct {
	log     *slog.Logger
	others  *hotkeys.Invalidator // invalidates here, and at the other instances
	follows bool                 // whether others runs; guarded by Hotparam.mu

	mu sync.Mutex // guards the rest; never held while a request is answered
	// inForce has the caches of the rules in force, by id, and next those of rules that are about to
	// be. If these are refused, they are dropped unused.
	inForce, next map[string]*ruleAnswers
	counters      map[string]*onhot.Counters[atomic.Int64] // by rule; they outlast it
}

func newAnswers(client redis.UniversalClient, namespace string, log *slog.Logger) (a *answers, err error) {
	a = &answers{log: log, inForce: make(map[string]*ruleAnswers), counters: make(map[string]*onhot.Counters[atomic.Int64])}
	a.others, err = hotkeys.NewInvalidator(client, hotkeys.InvalidatorConfig{Namespace: namespace, Logger: log}, a)
	return a, err
}

// ruleAnswers has the answers of one version of a rule. It implements [middleware.Sharing].
type ruleAnswers struct {
	rule   rules.Rule
	policy *onhot.Policy
	cache  *onhot.Cache
}

// ForRule implements [middleware.Sharer].
func (a *answers) ForRule(r *rules.Rule) (middleware.Sharing, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.inForce[r.ID]; x != nil && reflect.DeepEqual(x.rule, *r) {
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

// adopt puts the caches of these rules in force. It closes those of rules that have changed or gone:
// requests that wait for an answer there go on to the handler.
func (a *answers) adopt(ruleset *rules.Rules) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.inForce
	a.inForce = make(map[string]*ruleAnswers)
	for i := range ruleset.Rules {
		r := &ruleset.Rules[i]
		switch x := before[r.ID]; {
		case r.OnHot == nil:
		case x != nil && reflect.DeepEqual(x.rule, *r):
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
		_ = x.cache.Close(ended) // its handlers are cancelled, and end by themselves
	}
}

// run waits for the end of ctx. Then it closes all caches, and waits until the handlers that run for
// several requests have returned, for a bounded time. Later requests go alone.
func (a *answers) run(ctx context.Context) (err error) {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	a.each(func(x *ruleAnswers) { err = errors.Join(err, x.cache.Close(ctx)) })
	return err
}

// each calls f for each cache in force.
func (a *answers) each(f func(x *ruleAnswers)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.inForce {
		f(x)
	}
}

// invalidate calls f for each cache that may have answers. Those of rules that are about to be in
// force may be in use already.
func (a *answers) invalidate(f func(c *onhot.Cache)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, caches := range []map[string]*ruleAnswers{a.inForce, a.next} {
		for _, x := range caches {
			f(x.cache)
		}
	}
}

// Invalidate implements [middleware.Sharer]. The other instances drop their answers within a second.
func (a *answers) Invalidate(host, path, query string) {
	a.others.Target(onhot.TargetID(host, path, query))
}

// InvalidateTarget drops the answers to a target at all instances, within a second. host is as in
// [http.Request].Host, path is escaped, and query is raw. A request that is neither GET, HEAD nor
// OPTIONS and does not fail does the same.
func (h *Hotparam) InvalidateTarget(host, path, query string) {
	h.answers.Invalidate(host, path, query)
}

// InvalidateKey drops the answers to all requests of a hot key at all instances, within a second.
func (h *Hotparam) InvalidateKey(key rules.Key) { h.answers.others.Tag(onhot.TagID(key.String())) }

// followInvalidations begins to send and to follow invalidations, once a rule has on_hot. The caller
// holds mu.
func (h *Hotparam) followInvalidations(ruleset *rules.Rules) {
	has := func(r rules.Rule) bool { return r.OnHot != nil }
	if !h.closed && !h.answers.follows && slices.ContainsFunc(ruleset.Rules, has) {
		h.answers.follows = true
		h.run(h.answers.others.Run)
	}
}

// InvalidateTarget, InvalidateTag and Flush implement [hotkeys.AnswerCache].
func (a *answers) InvalidateTarget(id uint64) {
	a.invalidate(func(c *onhot.Cache) { c.InvalidateTarget(id) })
}
func (a *answers) InvalidateTag(id uint64) {
	a.invalidate(func(c *onhot.Cache) { c.InvalidateTag(id) })
}
func (a *answers) Flush() { a.invalidate((*onhot.Cache).Flush) }

// outcomes has the outcome for each way in which the cache answers.
var outcomes = map[onhot.How]middleware.Outcome{
	onhot.Hit: middleware.Stored, onhot.Stale: middleware.Stored, onhot.Joined: middleware.Joined, onhot.Led: middleware.Led,
	onhot.Alone: middleware.Alone, onhot.Refused: middleware.Refused, onhot.Gone: middleware.Left,
}

// Share implements [middleware.Sharing].
func (x *ruleAnswers) Share(r *http.Request, key string, header http.Header, admit func(bool) (http.Handler, bool)) (shared middleware.Shared) {
	res := x.cache.Do(r, x.policy, key, admit)
	shared.Outcome = outcomes[res.How]
	if res.Shared() {
		shared.Status, shared.Body = res.Reply(r, header)
	} else if res.How == onhot.Alone {
		res.Explain(header)
		shared.Reason = res.Reason.String()
	}
	return shared
}

// OnHotStats are the statistics of a rule with on_hot. The counters continue when the rules are
// reloaded.
type OnHotStats struct {
	// Requests counts the requests of hot keys by how they were answered: "hit" and "stale" from
	// memory, "joined" by another's run of the handler, "led" by their own for all, "alone" by the
	// handler as without on_hot, "refused" by the limit, and "gone", whose client left before.
	Requests map[string]int64
	Alone    map[string]int64 // requests that were answered alone, by reason
	// Refreshes counts runs of the handler that refreshed an answer already in use.
	Refreshes int64
	Panics    int64 // runs for several requests that panicked
	Entries   int   // answers in memory, and requests known to have none for sharing
	Bytes     int64 // memory of the answers
	Running   int   // handlers that run for several requests now
}

// stats returns the statistics by rule.
func (a *answers) stats() map[string]OnHotStats {
	all := make(map[string]OnHotStats)
	a.each(func(x *ruleAnswers) {
		s := x.cache.Stats()
		out := OnHotStats{
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
