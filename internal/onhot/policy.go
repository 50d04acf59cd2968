package onhot

import (
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// Policy says which requests share an answer, and for how long. Answers of one policy are never
// used by another, so a rule that changes takes a new policy, and begins with nothing. A Policy is
// safe for concurrent use.
type Policy struct {
	rules.OnHot
	id      uint64
	headers []string // canonical names
	cookies []string
}

var policies atomic.Uint64

// NewPolicy returns the policy of a rule's OnHot, which must be valid.
func NewPolicy(o rules.OnHot) *Policy {
	p := &Policy{OnHot: o.WithDefaults(), id: policies.Add(1), cookies: o.Cookies()}
	for _, name := range o.Headers() {
		p.headers = append(p.headers, http.CanonicalHeaderKey(name))
	}
	return p
}

// varies reports whether the key has the header that an answer varies by. It never has "*", which
// means all headers: [rules.OnHot] cannot name it.
func (p *Policy) varies(name string) bool {
	name = http.CanonicalHeaderKey(name)
	// With some cookies in the key, the handler has seen no others.
	return name == "Accept-Encoding" || slices.Contains(p.headers, name) || name == "Cookie" && len(p.cookies) > 0
}
