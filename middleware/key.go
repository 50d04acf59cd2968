package middleware

import (
	"strings"

	"github.com/hotparam/hotparam"
)

// A key is built in the scratch's buffer: the rule's id, a space, the route, the
// parameters.

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

// startKey begins a key's bytes with all that stands before the parameters: the
// rule's id, a space, the route, "?".
func (s *scratch) startKey(c *candidate) {
	if c.head == nil {
		s.writeHead(c)
		return
	}
	s.key = append(s.key[:0], c.head...)
}

// writeHead is startKey on a route that the request itself names.
func (s *scratch) writeHead(c *candidate) {
	s.key = append(append(append(s.key[:0], c.prefix...), s.req.Method...), ' ')
	if c.text != "" {
		s.key = append(s.key, c.text...)
	} else {
		s.key = hotparam.AppendPath(s.key, s.req.Path)
	}
	s.key = append(s.key, '?')
}

// fit makes of a key with so long a prefix what it is counted by.
func (g *Guard) fit(key []byte, prefix int) []byte {
	if len(key)-prefix > hotparam.MaxText {
		key = append(key[:prefix], hotparam.Cut(key[prefix:], hotparam.MaxText)...)
	}
	if fitted := g.counts.Fit(key[prefix:]); len(fitted) != len(key)-prefix {
		key = append(key[:prefix], fitted...)
	}
	return key
}
