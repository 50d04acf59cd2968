package kafkasink

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/kafkaclient"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// logEvery is the minimum time between two log lines of one kind, however often the cluster
// is lost and found.
const logEvery = 10 * time.Second

// reach records whether the cluster can be reached, and logs changes. It is safe for concurrent
// use.
type reach struct {
	log *slog.Logger

	mu     sync.Mutex
	up     bool
	err    error
	closed bool

	outage  loglimit.Outage
	stalls  loglimit.Limit
	loggedN int       // number of partitions in the last log line; 0 at first
	foundAt time.Time // time of that line
}

// recordLost records that the cluster cannot be reached.
func (r *reach) recordLost(err error, now time.Time) {
	err = kafkaclient.Explain(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.err = false, err
	if !r.closed {
		r.outage.Failed(r.log, logEvery, now, "kafka cannot be reached; requests are not affected", "err", err)
	}
}

// recordFound records that the cluster was reached, and that the topic has n partitions.
func (r *reach) recordFound(topic string, n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.err = true, nil
	_, back := r.outage.End(now)
	if r.closed || !back && (n == r.loggedN || now.Sub(r.foundAt) < logEvery) {
		return
	}
	r.loggedN, r.foundAt = n, now
	r.log.Info("kafka is reached", "topic", topic, "partitions", n)
}

// recordStall logs why a session is replaced.
func (r *reach) recordStall(why string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.stalls.Warn(loglimit.LineRate{Burst: 1, Every: time.Minute}, r.log, why, "for", d)
	}
}

// close stops logging.
func (r *reach) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *reach) connected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up
}

// lastError returns the reason why the cluster cannot be reached, or nil if it can.
func (r *reach) lastError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// sendError returns the reason why nothing can be sent, or nil while the first connection is made.
func (r *reach) sendError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	return r.err
}
