package middleware

import (
	"strings"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// scratch is what a check works with; it is reused.
type scratch struct {
	req    Request
	route  *route
	params hotparam.Params
	loaded bool            // params holds the request's
	values *hotparam.Route // whose path values params holds
	key    []byte
	path   []byte
	now    time.Duration
	timed  bool

	matched []string        // the key that each candidate's matcher has given
	own     hotparam.Params // for one of these

	ruling
	course
	groups groups
}

// ruling is how a request's denials add up.
type ruling struct {
	denied  bool
	decider *terms // of the rule that decided; nil: none did
}

// course is what a request has taken so far, and what it has yet to do.
type course struct {
	holds     bool // permits, and owes costs, until its ticket ends
	ticket    *Ticket
	taken     []taken
	takenKeys []byte
	delay     time.Duration // to wait before it goes on
	exact     []exact
	wanted    []wanted // permits
}

// taken is what is given back if another rule refuses; n is 0 where the cost is to
// come, and only held is put right.
type taken struct {
	bucket limiter.Bucket
	held   *held // whose bucket it is; nil: no hot key's
	n      int64
	mark   int64
	origin limiter.Receipt

	keyed    limiter.Keys
	hash     uint64
	from, to int // the key in takenKeys
}

func (g *Guard) begin() *scratch { return g.pool.Get().(*scratch) }

// end makes a scratch ready for the next request. It keeps no string of this
// one, and no buffer that a monster of a request has grown.
func (g *Guard) end(s *scratch) {
	const keep = 64 << 10
	if cap(s.key) > keep || cap(s.takenKeys) > keep || len(s.req.Query)+len(s.req.Path) > keep || s.params.Len() > keep/64 {
		return
	}
	s.params.Reset()
	if len(s.matched) > 0 {
		s.own.Reset()
		clear(s.matched)
		s.matched = s.matched[:0]
	}
	s.course.reset()
	s.req, s.route, s.loaded, s.values = Request{}, nil, false, nil
	s.timed, s.ruling = false, ruling{}
	g.pool.Put(s)
}

// reset keeps the room, and writes only what was written: nearly every request has
// taken nothing.
func (c *course) reset() {
	if len(c.taken) > 0 {
		clear(c.taken)
		c.taken, c.takenKeys = c.taken[:0], c.takenKeys[:0]
	}
	if len(c.exact) > 0 {
		clear(c.exact)
		c.exact = c.exact[:0]
	}
	if len(c.wanted) > 0 {
		clear(c.wanted)
		c.wanted = c.wanted[:0]
	}
	c.holds, c.ticket, c.delay = false, nil, 0
}

// ticketOf is the ticket of a request that holds, made when it is first needed.
func (c *course) ticketOf(g *Guard) *Ticket {
	if c.ticket == nil {
		c.ticket = g.tickets.Get().(*Ticket)
	}
	return c.ticket
}

// canonicalPath undoes what a client may have escaped without need: a router
// takes /%75/7 for /u/7, and so must the rules.
func (s *scratch) canonicalPath() {
	if strings.IndexByte(s.req.Path, '%') < 0 {
		return
	}
	s.path = hotparam.AppendPath(s.path[:0], s.req.Path)
	if string(s.path) != s.req.Path {
		s.req.Path = string(s.path)
	}
}

// load parses the query and the path values by a pattern, once.
func (s *scratch) load(values *hotparam.Route) {
	if s.loaded {
		if s.values == values {
			return
		}
		s.params.Reset()
	}
	s.loaded, s.values = true, values
	s.params.AddQuery(s.req.Query)
	if values != nil {
		values.Values(s.req.Path, s.params.AddPath)
	}
	s.params.Sort()
}

// giveBack undoes what the limits that allow have taken, since another refused or
// the request goes away.
func (g *Guard) giveBack(c *course) {
	if len(c.taken) > 0 {
		now := g.opts.clock()
		for i := range c.taken {
			c.taken[i].giveBack(now, c.takenKeys)
		}
	}
	if len(c.exact) > 0 {
		g.returnExact(c.exact)
	}
}

func (t *taken) giveBack(now time.Duration, keys []byte) {
	if t.held != nil {
		t.held.passed.Add(-1)
		t.held.refused.Add(1)
	}
	ask := limiter.Ask{Kind: limiter.Return, N: t.n, Mark: t.mark, Receipt: t.origin}
	switch {
	case ask.N == 0:
	case t.bucket != nil:
		t.bucket.Do(now, ask)
	default:
		t.keyed.Do(now, t.hash, keys[t.from:t.to], ask)
	}
}

// now is read once for a request, and only by one that meets a limit.
func (g *Guard) now(s *scratch) time.Duration {
	if !s.timed {
		s.now, s.timed = g.opts.clock(), true
	}
	return s.now
}
