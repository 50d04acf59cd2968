package middleware

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/rules"
)

// Sharer answers identical requests of hot keys together; see [WithSharer]. It is safe for
// concurrent use.
type Sharer interface {
	// ForRule returns what answers the requests of a rule with on_hot. It is called for each version
	// of the rules that is about to be in force. Only a rule that has not changed keeps its answers.
	ForRule(r *rules.Rule) (Sharing, error)
	// Invalidate drops the answers to a target, since a request that is neither GET nor HEAD has
	// succeeded there. path is escaped, and query is raw. It must be quick. It is called for paths
	// that the route of some rule with on_hot covers ([rules.Route.Covers]).
	Invalidate(host, path, query string)
}

// Sharing answers identical requests of the hot keys of one rule together.
type Sharing interface {
	// Share answers the request r of the hot key with this text ([rules.Key.String]), or says that
	// it has to be handled alone. It calls admit for each run of the handler for requests together,
	// in the goroutine of the caller, which lets the run past the key's limit or refuses it. With
	// refresh, an older answer is at hand, and the run does not wait for the limit. If the outcome
	// has an answer, its headers are in header. An answer is kept only if the rule's route covers the
	// path of r, since Invalidate reaches no others.
	Share(r *http.Request, key string, header http.Header, admit func(refresh bool) (http.Handler, bool)) Shared
}

// Shared is how a request was answered together with others.
type Shared struct {
	Outcome Outcome
	Status  int    // of the answer
	Body    []byte // must not be changed
	Reason  string // why the outcome is Alone, in one word
}

// Outcome is how a [Sharing] answered a request.
type Outcome uint8

// Outcomes.
const (
	Alone   Outcome = iota // not at all: the handler answers, if the limit admits the request
	Stored                 // by an answer in memory
	Joined                 // by the answer to an identical request under way
	Led                    // by the handler, whose answer serves others too
	Refused                // by the limit
	Left                   // not at all: the client has left

	outcomes
)

var outcomeNames = [outcomes]string{"alone", "stored", "joined", "led", "refused", "left"}

// String returns the outcome in one word, as metrics name it.
func (o Outcome) String() string { return outcomeNames[o] }

// answers reports whether the outcome has an answer.
func (o Outcome) answers() bool { return o == Stored || o == Joined || o == Led }

// WithSharer sets what answers requests of hot keys of rules with on_hot. Without it on_hot is
// ignored. hotparam.Open sets one. Only [Guard.Handler] answers so; other callers check in two
// steps, see [Steps].
func WithSharer(s Sharer) Option { return func(o *options) { o.sharer = s } }

// Steps are the steps of a check. A request of a hot key that may be answered together with others
// is checked in two calls: the first counts it, and only if the handler answers it does the second
// ask its limits.
type Steps uint8

// The steps of one call.
const (
	// AllSteps counts the request and asks its limits.
	AllSteps Steps = iota
	// CountStep counts the request. If one of its keys is hot and the key's rule has on_hot, that is
	// all: the decision allows the request with [rules.ReasonShared], and its Answer has [HotHeader].
	// Otherwise it asks the limits too, as for each method but GET and HEAD: no cache answers it.
	CountStep
	// LimitStep asks the limits of a request that CountStep has allowed with ReasonShared.
	LimitStep
)

// counts reports whether the call counts the request.
func (s Steps) counts() bool { return s != LimitStep }

// sharedKey is a hot key whose requests are answered together, in one version of the rules. It is
// the From of decisions with ReasonShared.
type sharedKey struct {
	rule  *rule
	state *hotState
	text  string
}

// HotHeader is the header of an [rules.Answer] to a request of a hot key that may be answered
// from a cache; see [Steps].
const HotHeader = "X-Hotparam-Hot"

// Answer marks the request as hot, for a gateway that has a cache.
func (*sharedKey) Answer(rules.Decision) rules.Answer {
	return rules.Answer{Header: map[string][]string{HotHeader: {"1"}}}
}

// outcomeCounts count the requests of hot keys by how they were answered.
type outcomeCounts [outcomes]atomic.Int64

// compileOnHot gets what answers the requests of the rule's hot keys together.
func (r *rule) compileOnHot(o *options) (err error) {
	if r.OnHot == nil || o.shadow {
		return nil
	}
	if o.sharer == nil {
		o.log.Warn("on_hot is ignored, since this guard keeps no answers: hotparam.Open makes one that does", "rule", r.ID)
		return nil
	}
	if r.sharing, err = o.sharer.ForRule(r.Rule); err != nil {
		return fmt.Errorf("on_hot: %w", err)
	}
	return nil
}

// sharedFor returns the key for requests that are answered by this version of the rule.
func (h *hotState) sharedFor(r *rule, key rules.Key) *sharedKey {
	s := h.shared.Load()
	if s == nil || s.rule != r {
		s = &sharedKey{rule: r, state: h, text: key.String()}
		h.shared.Store(s)
	}
	return s
}

// Exchange is a request of a hot key that may be answered together with others.
type Exchange struct {
	// Request is the request that CountStep has allowed with [rules.ReasonShared].
	Request Request
	// HTTP identifies the answer. The request that a run's handler gets is made from it.
	HTTP *http.Request
	// Header receives the headers of the answer.
	Header http.Header
	// Lead returns the handler for a run; see [Leader].
	Lead func() http.Handler

	run runCheck
}

// Share answers a request together with others. d is the decision of CountStep. If the outcome is
// Alone, the caller asks the limits by LimitStep. If it is Refused, Share sets *d to the refusal.
// [Guard.Handler] does all this for net/http.
func (g *Guard) Share(x *Exchange, d *rules.Decision) Shared {
	key, ok := d.From.(*sharedKey)
	if !ok || !key.rule.sharesRequest(&x.Request) {
		return Shared{}
	}
	return g.share(key, x, d, func(step Request) (d rules.Decision, t *Ticket) {
		req := x.Request
		req.Steps, req.NoWait, req.run = step.Steps, req.NoWait || step.NoWait, step.run
		return d, g.check(&req, true, &d)
	})
}

// sharesRequest reports whether a request may be answered together with others. One that is not
// HTTP may be if the rule names its resource.
func (r *rule) sharesRequest(in *Request) bool {
	return in.Method != "" || in.Path != "" || r.Match.Route.String() == in.Pattern
}

// share implements Share. limit asks the limits of the request, in the step that its argument has.
func (g *Guard) share(key *sharedKey, x *Exchange, d *rules.Decision, limit func(Request) (rules.Decision, *Ticket)) Shared {
	shared := g.ask(key, x, func(refresh bool) (http.Handler, bool) {
		next := x.Lead()
		if next == nil {
			return withheld, true
		}
		x.run = runCheck{made: true, refresh: refresh}
		refusal, ticket := limit(Request{Steps: LimitStep, NoWait: refresh, run: &x.run})
		if !refusal.Allowed {
			if !refresh {
				*d = refusal
			}
			return nil, false
		}
		return &run{guard: g, ticket: ticket, next: next}, true
	})
	key.state.recordOutcome(shared.Outcome, shared.Reason)
	if shared.Outcome == Refused && !x.run.made { // with the request that led the run
		key.state.record(false)
	}
	g.countRun(key.rule.spec.decisions, &x.run, shared.Outcome)
	return shared
}

// ask asks the rule's sharing. If that panics, the request is handled alone.
func (g *Guard) ask(key *sharedKey, x *Exchange, admit func(refresh bool) (http.Handler, bool)) (shared Shared) {
	defer func() {
		if recover() != nil {
			g.stats.Panics.Add(1)
			shared = Shared{}
		}
	}()
	return key.rule.sharing.Share(x.HTTP, key.text, x.Header, admit)
}

// serveShared answers an HTTP request that is counted and has a hot key whose rule has on_hot.
func (g *Guard) serveShared(w http.ResponseWriter, r *http.Request, route func(*http.Request) string, next http.Handler, d rules.Decision) {
	x := &Exchange{HTTP: r, Header: w.Header(), Lead: func() http.Handler { return next }}
	if l, ok := next.(Leader); ok {
		x.Lead = l.Lead
	}
	shared := g.share(d.From.(*sharedKey), x, &d, func(step Request) (rules.Decision, *Ticket) {
		return g.examine(r, route, step)
	})
	switch {
	case shared.Outcome.answers():
		writeBody(w, r, shared.Status, shared.Body)
	case shared.Outcome == Refused:
		g.respond(w, r, next, &d, nil)
	case shared.Outcome == Left: // or its time has ended, and the client waits for an answer
		w.WriteHeader(http.StatusServiceUnavailable)
	case shared.Outcome == Alone:
		d, ticket := g.examine(r, route, Request{Steps: LimitStep})
		g.respond(w, r, next, &d, ticket)
	}
}

// shareOrLimit counts the request. If one of its keys is hot and the key's rule answers requests
// together, that is all. Otherwise it also asks the limits.
func (r *request) shareOrLimit() {
	r.asks = false
	r.applyEach()
	if r.shared != nil && !r.refusing {
		return
	}
	r.shared = nil
	r.counts, r.asks = false, true
	if r.unasked {
		r.applyEach()
	}
}

// postpone records that a pass which asks no limits has found one to ask.
func (r *request) postpone(found bool) { r.unasked = r.unasked || found }

// postponeRefusal records that the request is refused, whatever its limits.
func (r *request) postponeRefusal() { r.unasked, r.refusing = true, true }

// findShared looks whether the request is answered together with others, since this key is hot.
func (r *request) findShared(cl *claim, hot *hotset.Entry[*hotState]) {
	r.sampleOrigin(cl, hot)
	r.postpone(true)
	if r.shared == nil && cl.rule.shares(&hot.Hot) {
		r.shared = hot.Payload.sharedFor(cl.rule.rule, hot.Hot.Key)
	}
}

// shares reports whether requests of this hot key of the rule are answered together.
func (r *rule) shares(hot *rules.Hot) bool {
	return r.sharing != nil && !hot.IsExempt()
}

// sharePlain implements findShared and finish for requests that need no pooled request.
func (g *Guard) sharePlain(c *candidate, in *Request, hot *hotset.Entry[*hotState], d *rules.Decision) {
	key := hot.Payload.sharedFor(c.rule, hot.Hot.Key)
	n := rand.Uint64()
	if weight := hot.Payload.origins.weight(n); weight > 0 {
		hot.Payload.origins.sample(c.name, g.callerOf(in), weight)
	}
	key.decide(d, uint32(n))
}

// decide sets the decision on a request that is answered together with others, and counts it.
func (s *sharedKey) decide(d *rules.Decision, shard uint32) {
	d.Allowed, d.Reason, d.Rule, d.From = true, rules.ReasonShared, s.rule.ID, s
	s.rule.spec.decisions.of[rules.ReasonShared].addOne(shard)
}

// sharesMethod reports whether requests with this method may be answered together.
func sharesMethod(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// onlyCounts reports whether the check ends with CountStep if a key of the request is hot. A request
// that is not HTTP has no method.
func (in *Request) onlyCounts() bool {
	return in.Steps == CountStep && (sharesMethod(in.Method) || in.Method == "" && in.Path == "")
}
