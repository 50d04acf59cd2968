package kafkasink

import (
	"log/slog"
	"sync"
	"time"
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
	n      int // number of partitions
	err    error
	closed bool

	logged                     loggedState
	loggedN                    int       // number of partitions in the last log line
	lostAt, foundAt, stalledAt time.Time // times of the last log lines of these kinds
}

// loggedState is the state in the last log line.
type loggedState uint8

const (
	loggedNothing loggedState = iota
	loggedLost
	loggedFound
)

// recordLost records that the cluster cannot be reached.
func (r *reach) recordLost(err error, now time.Time) {
	err = explain(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.err = false, err
	if r.closed || r.logged == loggedLost || now.Sub(r.lostAt) < logEvery {
		return
	}
	r.logged, r.lostAt = loggedLost, now
	r.log.Warn("kafka cannot be reached; requests are not affected", "err", err)
}

// recordFound records that the cluster was reached, and that the topic has n partitions.
func (r *reach) recordFound(topic string, n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.n, r.err = true, n, nil
	if r.closed || r.logged == loggedFound && (n == r.loggedN || now.Sub(r.foundAt) < logEvery) {
		return
	}
	r.logged, r.loggedN, r.foundAt = loggedFound, n, now
	r.log.Info("kafka is reached", "topic", topic, "partitions", n)
}

// recordStall logs that a session has delivered nothing for d and is replaced.
func (r *reach) recordStall(d time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || now.Sub(r.stalledAt) < time.Minute {
		return
	}
	r.stalledAt = now
	r.log.Warn("kafka takes no records though it is reached; reconnecting", "for", d)
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
