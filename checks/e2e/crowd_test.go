package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// The rule of a crowd's terms: hot at 20 per second over all instances. A hot key
// cools soon.
const (
	crowdThreshold = 20
	crowdExit      = 16
	crowdRule      = `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 20/s, exit: 80%, hold: 1s, cool_down: 0s}
    limit: {rate: 2/s, burst: 2, scope: instance}
`
)

// The crowd's rates per second over all instances. No instance alone reaches the threshold.
const (
	hotRate   = 42
	coldRate  = 300 // all cold terms together, one after the other
	coldTerms = 300
)

// tide is how long a term of the tides is requested, and then how long it is not.
const tide = 5 * time.Second

// kind is how often a term is requested.
type kind int

const (
	steady kind = iota // always over the threshold
	tidal              // over the threshold for a while, then not at all, again and again
	cold               // far below
)

// term is a search term and the times at which it was requested.
type term struct {
	name, member string
	kind         kind
	partition    int32
	phase        time.Duration // offset of a tidal term

	mu   sync.Mutex
	asks []answer
}

// crowd is known traffic on all instances, from which the truly hot keys at any time can be
// computed. A control runs in parallel: the same flow of one term to a server without hotparam.
type crowd struct {
	t       *testing.T
	began   time.Time
	terms   []*term
	control *flow
	stop    func()
}

// newCrowd picks terms so that each partition has steady and tidal ones.
func newCrowd(t *testing.T) *crowd {
	c := &crowd{t: t}
	perPartition := func(kind kind, total int) {
		termsIn := make([]int, partitions)
		for i, found := 0, 0; found < total; i++ {
			x := newTerm(fmt.Sprintf("%s%d", [...]string{"steady", "tidal"}[kind], i), kind)
			if termsIn[x.partition] <= found/partitions {
				termsIn[x.partition]++
				c.terms = append(c.terms, x)
				x.phase = 2 * tide * time.Duration(found) / time.Duration(total)
				found++
			}
		}
	}
	perPartition(steady, 20)
	perPartition(tidal, 12)
	for i := range coldTerms {
		c.terms = append(c.terms, newTerm(fmt.Sprintf("cold%d", i), cold))
	}
	return c
}

func newTerm(name string, kind kind) *term {
	text := "GET /search?q=" + name
	return &term{
		name: name, member: "search-terms " + text, kind: kind,
		partition: wire.Partition(wire.Plain.Append(nil, []byte(text)), partitions),
	}
}

// termsOf returns the terms of a kind.
func (c *crowd) termsOf(kind kind) []*term {
	var terms []*term
	for _, x := range c.terms {
		if x.kind == kind {
			terms = append(terms, x)
		}
	}
	return terms
}

// beginVisits starts the traffic.
func (c *crowd) beginVisits(f *fleet, apis []*api, control string) {
	c.began = time.Now()
	c.control = &flow{name: "control", url: control, perSecond: 100}
	work := []func(context.Context){func(ctx context.Context) { c.control.run(ctx, f.http) }}
	colds := c.termsOf(cold)
	for i, a := range apis {
		for _, x := range c.terms {
			if x.kind != cold {
				work = append(work, func(ctx context.Context) { c.visit(ctx, a, hotRate/len(apis), func(int) *term { return x }) })
			}
		}
		work = append(work, func(ctx context.Context) {
			// Each instance starts at another term, so that no two request the same one at once.
			c.visit(ctx, a, coldRate/len(apis), func(n int) *term { return colds[(n+i*coldTerms/len(apis))%coldTerms] })
		})
	}
	c.stop = beside(c.t, work...)
}

// visit sends one request after the other to one instance, at a pace, until ctx ends. It waits
// for a request in flight.
func (c *crowd) visit(ctx context.Context, a *api, perSecond int, next func(n int) *term) {
	begin := time.Now().Add(rand.N(time.Second / time.Duration(perSecond))) // or all would come at once
	keepPace(ctx, perSecond, begin, func(n int, due time.Time) {
		x := next(n)
		if !x.wanted(time.Since(c.began)) {
			return
		}
		got := a.f.ask(a.search(x.name))
		got.due = due
		x.mu.Lock()
		defer x.mu.Unlock()
		x.asks = append(x.asks, got)
	})
}

// wanted reports whether the term is requested at a time.
func (x *term) wanted(at time.Duration) bool {
	return x.kind != tidal || (at+x.phase)%(2*tide) < tide
}

// truth holds the times at which a term was requested.
type truth struct{ times[time.Duration] }

// truths returns the requests of all terms so far, by member.
func (c *crowd) truths() map[string]*truth {
	all := make(map[string]*truth, len(c.terms))
	for _, x := range c.terms {
		var tr truth
		x.mu.Lock()
		for _, a := range x.asks {
			tr.add(a.sent.Sub(c.began), a.got.Sub(c.began))
		}
		x.mu.Unlock()
		tr.sort()
		all[x.member] = &tr
	}
	return all
}

// asked returns the number of requests in [from, to).
func (c *crowd) asked(from, to time.Duration) (sum int64) {
	for _, tr := range c.truths() {
		sum += below(tr.firsts, to) - below(tr.firsts, from)
	}
	return sum
}

// Margins of certainty: a key with a count between them may be hot or not.
const (
	surelyHot  = crowdThreshold * 5 / 4
	surelyCool = crowdExit * 4 / 5
)

// everyWindow reports whether ok holds for the counts of all windows of a second that end in [from, to].
func (tr *truth) everyWindow(from, to time.Duration, ok func(least, most int64) bool) bool {
	for end := to; end >= from; end -= 50 * time.Millisecond {
		if !ok(tr.in(end-time.Second, end)) {
			return false
		}
	}
	return true
}

// hotSince reports whether a term was hot beyond doubt for the time before at, coolSince whether
// it was cool.
func (tr *truth) hotSince(at, before time.Duration) bool {
	return tr.everyWindow(at-before, at, func(least, _ int64) bool { return least >= surelyHot })
}

func (tr *truth) coolSince(at, before time.Duration) bool {
	return tr.everyWindow(at-before, at, func(_, most int64) bool { return most < surelyCool })
}

// staysHot reports whether no window within the time before at was below the exit. A steady term
// can be below it if the machine is too busy to request it often enough.
func (tr *truth) staysHot(at, before time.Duration) bool {
	return tr.everyWindow(at-before, at, func(least, _ int64) bool { return least >= crowdExit })
}

// checkTerms checks all requests since a time: none failed, no cold term was refused, and none waited
// longer than a request to the control does.
func (c *crowd) checkTerms(since time.Duration) {
	c.t.Helper()
	from, now := c.began.Add(since), time.Now()
	var took []time.Duration
	for _, x := range c.terms {
		x.mu.Lock()
		failed := 0
		for _, a := range x.asks {
			if a.due.Before(from) || a.due.After(now) {
				continue
			}
			took = append(took, a.took())
			if a.status != http.StatusOK && (x.kind == cold || !a.refused()) {
				if failed++; failed <= 3 {
					c.t.Errorf("%s: status %d after %v at %v, error %v", x.name, a.status, a.took(), a.due.Sub(c.began), a.err)
				}
			}
		}
		x.mu.Unlock()
		if failed > 0 {
			c.t.Errorf("%s: %d requests failed", x.name, failed)
		}
	}
	judgeLatency(c.t, took, nil, c.control.between(from, now))
}
