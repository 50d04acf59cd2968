package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// Status is the severity of a finding.
type Status string

// Statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning" // it works, and may soon not
	Problem Status = "problem"
	Unknown Status = "unknown" // the check failed
)

// Finding is the result of one check.
type Finding struct {
	// Check is the name of the check: file, redis, rights, publisher, counts, rules, clocks,
	// losses, memory, places, tables, controls or history.
	Check  string `json:"check"`
	Status Status `json:"status"`
	// What describes the finding in a sentence.
	What string `json:"what"`
	// Mend describes the fix. It is empty if there is nothing to fix.
	Mend string `json:"mend,omitempty"`
}

// Config configures [Examine]. Client and Namespace are required.
type Config struct {
	Client    redis.UniversalClient
	Namespace string
	// Where is the URL of Redis without its password, for messages.
	Where string
	// Rules are the rules of the file. Nil means that there is no file to compare with.
	Rules *rules.Rules
	// Nameless reports that counts have no instance names, as from another StatsD daemon.
	Nameless bool
	// LimitsOnly reports that the file has source: none. Redis is then used only by limits that
	// instances share.
	LimitsOnly bool
	// History is nil if the file has none.
	History *History
	// Transport returns an error if counts cannot be sent. Nil means that this cannot be
	// tested, as with UDP.
	Transport func(context.Context) error
}

// Thresholds of findings.
const (
	// callTimeout is the deadline of each call to Redis.
	callTimeout = 3 * time.Second
	// maxOffset is the largest clock offset that is not a problem, as in its alert. Counts are
	// corrected by the measured offset; displayed times and certificates are not.
	maxOffset = 250 * time.Millisecond
	// maxLost is the largest fraction of lost packets that is not a problem, as in its alert.
	// Later packets make up for a few lost ones.
	maxLost = 0.01
	// heardWithin is the longest time without a packet from an instance. Instances send one
	// every second.
	heardWithin = 5 * time.Second
	// nearlyFull is the largest used fraction of an aggregator's memory that is not reported.
	nearlyFull = 0.95
	// endsSoon is the remaining time at which a control is reported.
	endsSoon = 5 * time.Minute
)

// examination is one run of [Examine].
type examination struct {
	Config
	found      []Finding
	published  bool // an aggregator publishes for the namespace
	aggregator bool // the user may do all that an aggregator does
}

// Examine runs all checks, each after those on which it depends. If Redis does not answer, the
// findings of the checks that need it are Unknown.
func Examine(ctx context.Context, c Config) []Finding {
	x := &examination{Config: c}
	if c.LimitsOnly {
		x.limitsOnly(ctx)
		return x.found
	}
	x.transport(ctx)
	if !x.redis(ctx) {
		for _, check := range []string{"rights", "publisher", "counts", "rules", "clocks", "losses", "memory", "places", "controls"} {
			x.add(check, Unknown, "Redis does not answer", "")
		}
		return x.found
	}
	x.rights(ctx)
	x.publisher(ctx)
	x.members(ctx)
	x.controls(ctx)
	x.history(ctx)
	return x.found
}

// limitsOnly runs the checks of a fleet that does not count.
func (x *examination) limitsOnly(ctx context.Context) {
	x.add("counts", OK, "source: none: instances send no counts, so no aggregator is needed", "")
	if !x.Rules.ShareLimits() {
		x.add("redis", OK, "no limit has scope: share, fleet or exact, so no Redis is needed", "")
	} else if x.redis(ctx) {
		x.rights(ctx)
	}
}

func (x *examination) add(check string, status Status, what, mend string) {
	x.found = append(x.found, Finding{check, status, what, mend})
}

func (x *examination) transport(ctx context.Context) {
	if x.Transport == nil {
		return
	}
	if err := x.Transport(ctx); err != nil {
		x.add("counts", Problem, fmt.Sprintf("counts cannot be sent: %v", err), "correct section kafka or statsd of the file, or start the server that it names")
	}
}
