package kafkasource

import (
	"log/slog"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// outageEvery is the least time between two logged outages of one kind, each with its end,
// however often they come and go.
const outageEvery = 10 * time.Second

// mayLog reports whether one more line of a kind may be logged, of all partitions: ten at
// once, then one a second.
func mayLog(lines *loglimit.Limit) bool {
	_, ok := lines.Allow(loglimit.Rate{Burst: 10, Every: time.Second}, time.Now())
	return ok
}

// outage logs that something does not work once, and that it works again.
type outage struct {
	log    *slog.Logger
	begins string
	ends   string
	lines  loglimit.Outage
}

// note records the outcome of one try.
func (o *outage) note(err error) {
	now := time.Now()
	if err != nil {
		if o.lines.Begin(outageEvery, now) {
			o.log.Warn(o.begins, "err", err)
		}
		return
	}
	if _, log := o.lines.End(now); log {
		o.log.Info(o.ends)
	}
}
