package kafkasource

import "log/slog"

// outage logs that something does not work once, and that it works again.
type outage struct {
	log      *slog.Logger
	begins   string
	ends     string
	isOutage bool
}

// note takes the outcome of one try.
func (o *outage) note(err error) {
	switch {
	case err != nil && !o.isOutage:
		o.isOutage = true
		o.log.Warn(o.begins, "err", err)
	case err == nil && o.isOutage:
		o.isOutage = false
		o.log.Info(o.ends)
	}
}
