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

	denied    bool
	ticket    *Ticket // nil: costs are not asked for
	taken     []taken
	takenKeys []byte
}

// taken is a token that is given back if another rule refuses; n is 0 where the
// cost is to come, and only held is put right.
type taken struct {
	bucket *limiter.TokenBucket
	held   *held // whose bucket it is; nil: no hot key's
	n      int64

	keyed    *limiter.Keyed
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
	clear(s.taken)
	s.taken, s.takenKeys = s.taken[:0], s.takenKeys[:0]
	s.req, s.route, s.loaded, s.values = Request{}, nil, false, nil
	s.timed, s.denied, s.ticket = false, false, nil
	g.pool.Put(s)
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

// giveBack undoes what the limits that allow have taken, since another refused.
func (s *scratch) giveBack() {
	for _, t := range s.taken {
		if t.held != nil {
			t.held.passed.Add(-1)
			t.held.refused.Add(1)
		}
		if t.bucket != nil {
			t.bucket.GiveBack(t.n)
		} else {
			t.keyed.GiveBack(t.hash, s.takenKeys[t.from:t.to], t.n)
		}
	}
}

// now is read once for a request, and only by one that meets a limit.
func (g *Guard) now(s *scratch) time.Duration {
	if !s.timed {
		s.now, s.timed = g.opts.clock(), true
	}
	return s.now
}
