package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
)

// Status is how bad a finding is.
type Status string

// Statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning" // it works, and may soon not
	Problem Status = "problem"
	Unknown Status = "unknown" // it cannot be told
)

// Finding is what was found about one thing.
type Finding struct {
	// Check is what was looked at: file, redis, rights, publisher, counts, rules, clocks,
	// losses, memory, places or controls.
	Check  string `json:"check"`
	Status Status `json:"status"`
	// What was found, as a sentence.
	What string `json:"what"`
	// Mend says what to do. It is empty if there is nothing to do.
	Mend string `json:"mend,omitempty"`
}

// Config is what to examine. Client and Namespace are required.
type Config struct {
	Client    redis.UniversalClient
	Namespace string
	// Where is the URL of Redis without its password, for messages.
	Where string
	// Rules are those of the file. If nil, there is no file to compare with.
	Rules *hotparam.Rules
	// Nameless reports that counts come without the names of instances, as from a StatsD that
	// is not ours.
	Nameless bool
	// Transport returns an error if counts cannot be sent, which says what to do. If nil, that
	// is not known beforehand, as with UDP.
	Transport func(context.Context) error
}

// Bounds of what is well.
const (
	// callTimeout bounds each call to Redis.
	callTimeout = 3 * time.Second
	// maxOffset is how far clocks may be off before it is a problem, as in the alert for it.
	// Counts are placed by the measured offset; what people read and certificates are not.
	maxOffset = 250 * time.Millisecond
	// maxLost is the part of packets that may be lost before it is a problem, as in the alert
	// for it. Later packets make up for a few.
	maxLost = 0.01
	// heardWithin is how lately an instance must have been heard of: it sends something each
	// second.
	heardWithin = 5 * time.Second
	// nearlyFull is the part of an aggregator's memory that may be used.
	nearlyFull = 0.95
	// endsSoon is how long before its end a control is mentioned.
	endsSoon = 5 * time.Minute
)

// examination is one run.
type examination struct {
	Config
	found     []Finding
	published bool // somebody publishes for the namespace
}

// Examine looks at the fleet, in the order in which one thing depends on another. If Redis does
// not answer, the rest is unknown.
func Examine(ctx context.Context, c Config) []Finding {
	x := &examination{Config: c}
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
	return x.found
}

func (x *examination) add(check string, status Status, what, mend string) {
	x.found = append(x.found, Finding{check, status, what, mend})
}

// call bounds a call.
func (x *examination) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}

func (x *examination) transport(ctx context.Context) {
	if x.Transport == nil {
		return
	}
	if err := x.Transport(ctx); err != nil {
		x.add("counts", Problem, fmt.Sprintf("counts cannot be sent: %v", err), "correct section kafka or statsd of the file, or start what it names")
	}
}
