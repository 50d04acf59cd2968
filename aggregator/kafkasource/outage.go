package kafkasource

import (
	"log/slog"
	"time"
)

// outageEvery is the least time between two logged outages of one kind, each with its end,
// however often they come and go.
const outageEvery = 10 * time.Second

// outage logs that something does not work once, and that it works again.
type outage struct {
	log      *slog.Logger
	begins   string
	ends     string
	isOutage bool // and logged
	logged   time.Time
}

// note records the outcome of one try.
func (o *outage) note(err error) {
	now := time.Now()
	switch {
	case err != nil && !o.isOutage && now.Sub(o.logged) >= outageEvery:
		o.isOutage, o.logged = true, now
		o.log.Warn(o.begins, "err", err)
	case err == nil && o.isOutage:
		o.isOutage = false
		o.log.Info(o.ends)
	}
}
