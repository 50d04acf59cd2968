package onhot

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// PolicyConfig says which requests share an answer, and for how long. Zero values are defaults.
type PolicyConfig struct {
	Coalesce bool          // identical requests join the one under way
	Cache    time.Duration // time for which an answer is fresh; zero stores none
	Stale    time.Duration // time after Cache in which an answer is used while it is refreshed
	Wait     time.Duration // time that a request waits for the one it joined; by default 300 ms
	Max      int64         // bytes of the largest answer, by default 1 MiB
	// Vary has the headers and cookies that identify an answer, as "header:NAME" and
	// "cookie:NAME". All others are kept from the handler. If it names cookies, requests with
	// cookies are shared, and their other cookies are kept from the handler too.
	Vary   []string
	Status []int // statuses that are shared, by default 200
}

// Policy is a [PolicyConfig] that has been checked. Answers of one policy are never used by
// another, so a rule that changes takes a new policy, and begins with nothing. A Policy is safe
// for concurrent use.
type Policy struct {
	PolicyConfig
	id      uint64
	headers []string // canonical names
	cookies []string
}

var policies atomic.Uint64

// unshared are headers that Vary cannot name: they identify users or connections, or the cache
// answers them itself.
var unshared = []string{
	"Authorization", "Proxy-Authorization", "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since",
	"If-Unmodified-Since", "Cache-Control", "Pragma", "Connection", "Upgrade", "Te", "Trailer", "Transfer-Encoding",
	"Content-Length", "Expect", "Host", "Accept-Encoding",
}

// NewPolicy checks c, fills in its defaults and returns it as a policy.
func NewPolicy(c PolicyConfig) (*Policy, error) {
	if c.Wait == 0 {
		c.Wait = 300 * time.Millisecond
	}
	if c.Max == 0 {
		c.Max = 1 << 20
	}
	if len(c.Status) == 0 {
		c.Status = []int{http.StatusOK}
	}
	p := &Policy{PolicyConfig: c, id: policies.Add(1)}
	switch {
	case !c.Coalesce && c.Cache <= 0:
		return nil, errors.New("neither coalesce nor cache is set: choose what to do with identical requests")
	case c.Cache < 0 || c.Stale < 0 || c.Wait < 0 || c.Max < 0:
		return nil, errors.New("cache, stale, wait and max must not be negative")
	case c.Stale > 0 && c.Cache == 0:
		return nil, errors.New("stale needs cache: without it no answer is kept")
	}
	for _, status := range c.Status {
		if err := checkStatus(status); err != nil {
			return nil, err
		}
	}
	for _, text := range c.Vary {
		if err := p.addVary(text); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func checkStatus(status int) error {
	switch {
	case status < 200 || status > 499:
		return fmt.Errorf("status %d cannot be shared: use one from 200 to 499", status)
	case slices.Contains([]int{206, 304, 401, 407, 412, 416, 421, 429}, status):
		return fmt.Errorf("status %d answers one request alone and cannot be shared", status)
	}
	return nil
}

func (p *Policy) addVary(text string) error {
	source, name, _ := strings.Cut(text, ":")
	valid := name != "" && tokenLen(name) == len(name)
	switch {
	case source != "header" && source != "cookie":
		return fmt.Errorf("vary %q: use header:NAME or cookie:NAME", text)
	case !valid:
		return fmt.Errorf("vary %q: the name is not valid", text)
	case source == "cookie":
		p.cookies = append(p.cookies, name)
		return nil
	}
	name = http.CanonicalHeaderKey(name)
	if slices.Contains(unshared, name) {
		return fmt.Errorf("vary %q: answers cannot be shared by this header", text)
	}
	p.headers = append(p.headers, name)
	return nil
}

// wholeCookie reports whether the key has all cookies.
func (p *Policy) wholeCookie() bool { return slices.Contains(p.headers, "Cookie") }

// varies reports whether the key has the header that an answer varies by.
func (p *Policy) varies(name string) bool {
	name = http.CanonicalHeaderKey(name)
	// With some cookies in the key, the handler has seen no others.
	return name == "Accept-Encoding" || slices.Contains(p.headers, name) || name == "Cookie" && len(p.cookies) > 0
}
