package middleware

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// request is one request on its path through the guard: the input, the keys that rules make
// from it, the verdict, the grants and the pending steps. Its steps are methods, in the order of
// doc.go. Requests are pooled: one belongs to the goroutine that serves it, from newRequest to
// recycle.
type request struct {
	guard *Guard
	reading
	trace *trace // nil, except for requests of Explain

	key     []byte // the key of the present rule, in its form in the hot set
	groups  groups
	matched []string      // keys that the matchers returned, by rule
	clock   time.Duration // the time that its limits use; 0 if none has asked for it

	verdict verdict
	grants  grants
	pending pending

	counts bool // whether it is counted
	asks   bool // whether its limits are asked
	// What a pass that asks no limits finds; see shareOrLimit.
	unasked  bool        // there is something to ask or to refuse
	refusing bool        // the request is refused, whatever its limits
	shared   *sharedKey  // the hot key for which it is answered together with others, or nil
	unshared *sharedRule // the rule that counts it as such although its limits are asked now, or nil

	shard  uint32  // index into counters that all requests add to
	holds  bool    // whether it holds permits and owes costs until its ticket ends
	ticket *Ticket // nil until something has to be done at the end

	controlled controlled
}

// newRequest returns a request on route.
func (g *Guard) newRequest(in *Request, route *route, holds bool) *request {
	r := g.requests.Get().(*request)
	r.in, r.route, r.holds = *in, route, holds
	r.counts, r.asks = in.Steps.counts(), true
	return r
}

// recycle returns the request to the pool without any of its strings. It drops a request whose
// buffers have grown far beyond the usual size.
func (r *request) recycle() {
	const keep = 64 << 10
	if cap(r.key) > keep || cap(r.grants.keys) > keep || len(r.in.Query)+len(r.in.Path) > keep || cap(r.params.fields) > keep/64 || r.params.list.Len() > keep/64 {
		return
	}
	r.params.reset()
	if len(r.matched) > 0 {
		r.params.custom.Reset()
		clear(r.matched)
		r.matched = r.matched[:0]
	}
	r.grants.reset()
	r.pending.reset()
	r.in, r.route, r.ticket, r.trace = Request{}, nil, nil, nil
	r.denied, r.unasked, r.refusing, r.shared, r.unshared = false, false, false, nil, nil
	r.clock = 0
	r.body.state = bodyUnknown
	r.verdict.reset()
	r.guard.requests.Put(r)
}

func (r *request) now() time.Duration {
	if r.clock == 0 {
		r.clock = r.guard.opts.clock()
	}
	return r.clock
}

// maxWait returns how long the request may wait, at most limit.
func (r *request) maxWait(limit time.Duration) time.Duration {
	if r.in.Context == nil {
		return limit
	}
	if end, ok := r.in.Context.Deadline(); ok {
		return max(0, min(limit, time.Until(end)))
	}
	return limit
}

// postpone records that a pass which asks no limits has found one to ask.
func (r *request) postpone(found bool) { r.unasked = r.unasked || found }

// postponeRefusal records that the request is refused, whatever its limits.
func (r *request) postponeRefusal() { r.unasked, r.refusing = true, true }

// controlled collects the keys that a rule with controls has made from a request. All keys are
// counted and looked up before any is limited, since an allowed key lifts the rule's limit
// from the whole request.
type controlled struct {
	controls *ruleControls // the present rule's controls; nil if it has none
	owed     int           // number of keys that the request owed a cost to before the rule
	blocked  bool          // one of the keys is blocked
	allowed  bool          // one of the keys is allowed
	texts    []byte        // the keys, one after the other
	keys     []controlledKey
}

// controlledKey is one key of a rule with controls.
type controlledKey struct {
	to     int // the key's end in texts
	hash   uint64
	spec   *limitSpec // its limit
	action published.ControlAction
	denied bool // whether an exception in the file blocks it
}
