package graphitesource

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// outage logs once that Graphite gives no counts, and once that it does again.
type outage struct {
	log   *slog.Logger
	lines loglimit.Outage
}

// outageEvery is the least time between two logged outages, each with its end, however often
// Graphite fails and recovers.
const outageEvery = 10 * time.Second

func (o *outage) begin(now time.Time, why *failure) {
	if o.lines.Begin(outageEvery, now) {
		o.log.Warn("Graphite gives no counts: nothing becomes hot and nothing cools until it does", "reason", why.reason, "err", why.err)
	}
}

func (o *outage) end(now time.Time, missed int64) {
	if lasted, log := o.lines.End(now); log {
		o.log.Info("Graphite gives counts again", "after", lasted.Round(time.Millisecond), "missed_seconds", missed)
	}
}

// longestPause is the longest time between two tries while Graphite does not answer.
const longestPause = 15 * time.Second

// pause returns how long to wait after so many failures in a row: a second, doubled each
// time, varied by a fifth so that aggregators do not retry together.
func pause(failures int) time.Duration {
	p := min(longestPause, time.Second<<min(failures-1, 10))
	return p - p/5 + rand.N(p/5*2)
}
