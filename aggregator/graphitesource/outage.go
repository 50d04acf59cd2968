package graphitesource

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

// outage logs once that Graphite gives no counts, and once that it does again.
type outage struct {
	log   *slog.Logger
	began time.Time // zero: there is none that was logged
	last  time.Time // when that was one
}

// outageEvery is the least time between two logged outages, each with its end, however often
// Graphite fails and recovers.
const outageEvery = 10 * time.Second

func (o *outage) begin(now time.Time, why *failure) {
	if o.began.IsZero() && now.Sub(o.last) >= outageEvery {
		o.began, o.last = now, now
		o.log.Warn("Graphite gives no counts: nothing becomes hot and nothing cools until it does", "reason", why.reason, "err", why.err)
	}
}

func (o *outage) end(now time.Time, missed int64) {
	if !o.began.IsZero() {
		o.log.Info("Graphite gives counts again", "after", now.Sub(o.began).Round(time.Millisecond), "missed_seconds", missed)
		o.began = time.Time{}
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
