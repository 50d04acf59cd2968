package blame

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Usage is the use of a back end within one interval, summed over all instances.
type Usage struct {
	// Busy is the time that requests spent in the handler within the interval, and Took the whole
	// durations of those that ended in it.
	Busy, Took time.Duration
	// Begun and Ended count requests that were admitted, Refused those that a hold refused.
	Begun, Ended, Refused int64
}

// RouteUsage is the usage of all keys of a route together.
type RouteUsage struct {
	Route string
	Usage
}

// KeyUsage is the usage of one key.
type KeyUsage struct {
	Key   rules.Key
	Route string
	Usage
}

// Config describes a pool: the rules that share a back end.
type Config struct {
	// Pool is the name of the pool: see [rules.Rule.Pool].
	Pool string
	// Shadow makes the judge report suspects and hold no key.
	Shadow bool
}

// Held is a key to hold.
type Held struct {
	Key   rules.Key
	Route string
	Since time.Time
	Hold  rules.Hold
}

// Released is a key that is no longer held.
type Released struct {
	Key rules.Key
	// Why is the reason, one of the texts in release.go.
	Why string
}

// Judge decides which keys of one pool to hold. It is not safe for concurrent use.
type Judge struct {
	config Config
}

// New returns a judge that has seen no usage. It blames no key until it has learned what is usual.
func New(config Config) *Judge { return &Judge{config: config} }

// Observe adds the usage since the previous call, some 100 ms, and reports whether Held has
// changed. A key that is missing had no usage that was worth a line.
func (j *Judge) Observe(now time.Time, routes []RouteUsage, keys []KeyUsage) (changed bool) {
	return false
}

// Held returns the keys to hold now, sorted by key.
func (j *Judge) Held() []Held { return nil }

// Released returns the keys that were released since the previous call.
func (j *Judge) Released() []Released { return nil }

// Adopt continues holds that another judge of this pool published. The judge tests them like its own.
func (j *Judge) Adopt(held []Held, now time.Time) {}

// State is what a judge has learned, for the snapshot of its successor.
type State struct {
	Keys []KeyState `json:"keys,omitempty"`
}

// KeyState is the usual behaviour of a key. A Key without a rule stands for the unreported keys of
// its route.
type KeyState struct {
	Key   rules.Key     `json:"key"`
	Route string        `json:"route"`
	Each  time.Duration `json:"each"` // the usual time of a request
	Rate  float64       `json:"rate"` // the usual requests a second
}

// Save returns what the judge has learned.
func (j *Judge) Save() State { return State{} }

// Load continues with what another judge has learned.
func (j *Judge) Load(state State) {}

// Explanation is what the judge knows of a key, for people.
type Explanation struct {
	Verdict      string        // "usual", "unknown", "suspect", "trial", "kept", "not the cause, again in 20s"
	Each, Usual  time.Duration // the time of one request, at present and usually
	Rate, Common float64       // its requests a second, at present and usually
	Share        float64       // its part of the pool's time
	Slow         float64       // how many times as slow as usual the others are
}

// Explain returns what the judge knows of a key.
func (j *Judge) Explain(key rules.Key) Explanation { return Explanation{} }
