package blame

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Usage is summed over all instances.
type Usage = wire.Usage

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

// A step is the time over which usage is compared: an interval, or several of a pool with few
// requests.
const (
	stepRequests = 20
	longestStep  = 500 * time.Millisecond
	longestGap   = 2 * time.Second // of calls; longer ones are not judged
	interval     = 100 * time.Millisecond
)

// Held is a key to hold.
type Held struct {
	Key   rules.Key
	Route string
	Since time.Time
	Hold  published.Hold
}

// Released is a key that is no longer held.
type Released struct {
	Key rules.Key
	Why string
}

// Judge decides which keys of one pool to hold. It is not safe for concurrent use.
type Judge struct {
	config   Config
	table    table
	last     time.Time // the end of the previous step
	begun    int64     // requests of the current step
	present  present
	tail     tail
	usual    usual
	held     []*hold // sorted by key
	released []Released
	trial    trial
	permits  permits
	retry    backoff // for trials
	early    backoff // for trials before an overload
	evidence evidence
	changed  bool // Held has changed since the previous step
}

// New returns a judge that has seen no usage. It blames no key until it has learned the usual costs.
func New(config Config) *Judge { return &Judge{config: config, table: newTable()} }

// Observe adds the usage since the previous call, some 100 ms, and reports whether Held has
// changed. A key that is missing had no usage that was worth a line.
func (j *Judge) Observe(now time.Time, routes []RouteUsage, keys []KeyUsage) (changed bool) {
	if j.last.IsZero() {
		j.last = now.Add(-interval)
	}
	j.addUsage(routes, keys)
	passed := now.Sub(j.last)
	if passed <= 0 || passed > longestGap {
		j.last = now
		j.clearStep()
		return false
	}
	if j.begun < stepRequests && passed < longestStep-interval/2 {
		return false
	}
	j.last = now
	j.changed = false
	j.step(now, passed.Seconds())
	j.clearStep()
	return j.changed
}

// addUsage adds usage to the current step. The unreported keys of a route are a subject, too.
func (j *Judge) addUsage(routes []RouteUsage, keys []KeyUsage) {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b KeyUsage) int { return a.Key.Compare(b.Key) })
	for _, r := range routes {
		j.begun += r.Begun
		j.table.find(rules.Key{Text: r.Route}, r.Route).step.Add(&r.Usage)
	}
	for _, k := range keys {
		j.table.find(k.Key, k.Route).step.Add(&k.Usage)
		j.table.find(rules.Key{Text: k.Route}, k.Route).step.Sub(&k.Usage)
	}
}

func (j *Judge) step(now time.Time, seconds float64) {
	j.present.measure(j.table.subjects, seconds)
	for _, s := range j.table.subjects {
		s.accumulate(seconds, j.present.wait, j.present.scatter)
	}
	j.evidence.weigh(&j.table, &j.present, seconds)
	j.tail.measure(j.table.subjects, seconds)
	var suspects []*subject
	still := len(j.held) > 0 && !j.trial.running && j.present.hurt() && j.running() < 0.5
	if j.usual.learned() && (j.present.overloaded() || still) {
		suspects = j.evidence.suspects(&j.table, j.trial.running, false, now)
	} else if j.usual.learned() && !j.config.Shadow && j.tail.disturbed() && !j.early.waits(now) {
		suspects = j.evidence.suspects(&j.table, j.trial.running, true, now)
	}
	if j.config.Shadow {
		j.reportSuspects(suspects, now)
	} else {
		j.decide(suspects, now, seconds)
	}
	blamed := len(suspects) > 0 || j.trial.running || j.permits.trying || j.config.Shadow && len(j.held) > 0
	j.usual.learn(j, blamed, seconds)
	j.table.evict()
}

func (j *Judge) clearStep() {
	j.begun = 0
	for _, s := range j.table.subjects {
		s.step = Usage{}
	}
}
