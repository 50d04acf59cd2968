package middleware

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// ruleSet is the rules made ready for the request path.
type ruleSet struct {
	*hotparam.Rules
	rules  []rule
	routes routeCache
}

// rule is one rule with what it needs to decide.
type rule struct {
	*hotparam.Rule
	prefix []byte               // "id ", what a key's bytes begin with
	single *limiter.TokenBucket // of a rule with neither hot nor by
	keyed  *limiter.Keyed       // of a rule with by but not hot
}

func compile(rules *hotparam.Rules, maxKeys int) (*ruleSet, error) {
	set := &ruleSet{Rules: rules, rules: make([]rule, len(rules.Rules))}
	for i := range rules.Rules {
		r := rule{Rule: &rules.Rules[i]}
		r.prefix = []byte(r.ID + " ")
		if l := r.Limit; l != nil {
			bucket, err := limiter.NewTokenBucket(l.Rate, l.Burst)
			if err != nil {
				return nil, fmt.Errorf("rule %q: %w", r.ID, err)
			}
			switch {
			case r.Hot != nil:
			case r.By.Kind == hotparam.ByNone:
				r.single = bucket
			default:
				if r.keyed, err = limiter.NewKeyed(l.Rate, l.Burst, maxKeys); err != nil {
					return nil, fmt.Errorf("rule %q: %w", r.ID, err)
				}
			}
		}
		set.rules[i] = r
	}
	return set, nil
}

func (s *ruleSet) byID(id string) *rule {
	for i := range s.rules {
		if s.rules[i].ID == id {
			return &s.rules[i]
		}
	}
	return nil
}

// route is what is known of one route before its requests come.
type route struct {
	text    string         // in keys; empty: method and path of the request
	pattern hotparam.Route // gives the path values
	rules   []candidate    // in order; those to ignore first where all rules count
	query   bool           // some candidate looks at the query
}

// candidate is a rule that may match a request of the route.
type candidate struct {
	*rule
	text   string // overrides the route's
	byPath bool   // the path decides whether it matches
}

// routeKey is what a route is looked up by: a pattern as the router tells it,
// or a resource's name with no method.
type routeKey struct{ method, name string }

// routeCache holds routes by pattern. Patterns come from the program and are
// few, but methods come from clients: beyond maxRoutes a route is made anew for
// each request.
type routeCache struct {
	known atomic.Pointer[map[routeKey]*route]
	mu    sync.Mutex // held to add
}

const maxRoutes = 4096

func (c *routeCache) find(key routeKey) *route {
	if known := c.known.Load(); known != nil {
		return (*known)[key]
	}
	return nil
}

func (c *routeCache) add(key routeKey, r *route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[routeKey]*route)
	if known := c.known.Load(); known != nil {
		if len(*known) >= maxRoutes {
			return
		}
		for k, v := range *known {
			next[k] = v
		}
	}
	next[routeKey{strings.Clone(key.method), strings.Clone(key.name)}] = r
	c.known.Store(&next)
}

// ofPattern is the route of a request whose router told its pattern.
func (s *ruleSet) ofPattern(method, pattern string) *route {
	key := routeKey{method, pattern}
	if r := s.routes.find(key); r != nil {
		return r
	}
	r := s.makeRoute(method, pattern)
	s.routes.add(key, r)
	return r
}

func (s *ruleSet) makeRoute(method, pattern string) *route {
	own, path, found := strings.Cut(pattern, " ")
	if found {
		method, path = own, strings.TrimLeft(path, " ")
	} else {
		path = pattern
	}
	r := &route{text: method + " " + path}
	if slash := strings.IndexByte(path, '/'); slash > 0 {
		path = path[slash:] // the host is part of the key, not of the match
	}
	r.pattern, _ = hotparam.ParseRoute(path)
	for i := range s.rules {
		candidate := candidate{rule: &s.rules[i]}
		switch match := candidate.Match.Route; {
		case match.IsAny(), match.SamePattern(method, path):
		case !match.MayMatch(method, r.pattern):
			continue
		default:
			candidate.byPath = true
		}
		r.rules = append(r.rules, candidate)
	}
	s.finish(r)
	return r
}

// ofResource is the route of something that has a name and no path.
func (s *ruleSet) ofResource(name string) *route {
	key := routeKey{"", name}
	if r := s.routes.find(key); r != nil {
		return r
	}
	r := &route{text: name}
	for i := range s.rules {
		if s.rules[i].Match.Route.Resource(name) {
			r.rules = append(r.rules, candidate{rule: &s.rules[i]})
		}
	}
	s.finish(r)
	s.routes.add(key, r)
	return r
}

// unknown is the route of requests whose router told nothing: the path decides
// on every rule.
func (s *ruleSet) unknown() *route {
	key := routeKey{"*", ""}
	if r := s.routes.find(key); r != nil {
		return r
	}
	r := &route{}
	for i := range s.rules {
		c := candidate{rule: &s.rules[i], byPath: true}
		if path := c.Match.Route.Path(); path != "" {
			c.text = path
		}
		r.rules = append(r.rules, c)
	}
	s.finish(r)
	s.routes.add(key, r)
	return r
}

// finish puts the rules to ignore first where all rules count, and notes what
// the rules look at.
func (s *ruleSet) finish(r *route) {
	if s.Evaluate == hotparam.EvaluateAll {
		var ignore, others []candidate
		for _, c := range r.rules {
			if c.Ignore {
				ignore = append(ignore, c)
			} else {
				others = append(others, c)
			}
		}
		r.rules = append(ignore, others...)
	}
	for _, c := range r.rules {
		r.query = r.query || len(c.Match.Query) > 0 || c.By.Kind != hotparam.ByNone
	}
}
