package middleware

import (
	"net/http"
	"time"
)

// rememberedFor is a time after which no answer to requests of a key that has cooled is kept.
const rememberedFor = 12 * time.Minute

// remembersAnswers reports whether some instance may have answers in memory to a target with this
// escaped path. A request that changes something invalidates them, whatever its method: the path
// alone decides, since the rules of GET requests there may differ.
func (g *Guard) remembersAnswers(path string) bool {
	last := g.lastHot.Load()
	return last > 0 && (g.someHot.Load() || time.Since(time.Unix(0, last)) < rememberedFor) && g.rules.Load().sharesPath(path)
}

// sharesPath reports whether some rule may keep answers to requests with this escaped path.
func (s *ruleSet) sharesPath(path string) bool {
	for i := range s.rules {
		if r := &s.rules[i]; r.sharing != nil && r.Match.Route.Covers(path) {
			return true
		}
	}
	return false
}

// noteHot records whether some key is hot now.
func (g *Guard) noteHot(some bool) {
	if some || g.someHot.Load() {
		g.lastHot.Store(time.Now().UnixNano())
	}
	g.someHot.Store(some)
}

// Changed drops the answers to a target, since a request whose method is not safe has ended there,
// unless its status is a failure (RFC 9111, section 4.4). A status of 0 means that none was
// written, or that it is not known. path is escaped, and query is raw. [Guard.Handler] calls it for
// its requests.
func (g *Guard) Changed(status int, host, path, query string) {
	if status < http.StatusBadRequest && g.remembersAnswers(path) {
		defer g.countPanic()
		g.opts.sharer.Invalidate(host, path, query)
	}
}

// IsSafe reports whether requests of the method change nothing (RFC 9110, section 9.2.1).
func IsSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
