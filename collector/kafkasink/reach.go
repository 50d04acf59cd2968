package kafkasink

import (
	"log/slog"
	"sync"
	"time"
)

// logEvery is how often at most a line of one kind is logged, however often the
// cluster comes and goes.
const logEvery = 10 * time.Second

// reach is whether the cluster can be reached. It logs once when it cannot, and when
// it can again.
type reach struct {
	log *slog.Logger

	mu     sync.Mutex
	up     bool
	n      int // partitions
	err    error
	closed bool

	logged                     loggedState
	loggedN                    int       // partitions that the log knows of
	lostAt, foundAt, stalledAt time.Time // when such a line was logged last
}

// loggedState is what the log was told last.
type loggedState uint8

const (
	loggedNothing loggedState = iota
	loggedLost
	loggedFound
)

func (r *reach) lost(err error, now time.Time) {
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

func (r *reach) found(topic string, n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.n, r.err = true, n, nil
	if r.closed || r.logged == loggedFound && (n == r.loggedN || now.Sub(r.foundAt) < logEvery) {
		return
	}
	r.logged, r.loggedN, r.foundAt = loggedFound, n, now
	r.log.Info("kafka is reached", "topic", topic, "partitions", n)
}

// stalled logs that a session is replaced in which nothing moved.
func (r *reach) stalled(d time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || now.Sub(r.stalledAt) < time.Minute {
		return
	}
	r.stalledAt = now
	r.log.Warn("kafka answers nothing about records that it was sent; connecting anew", "for", d)
}

// close has nothing told any more.
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

// trouble is why the cluster cannot be reached, nil if it can.
func (r *reach) trouble() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// why is why nothing can be taken, nil while the first connection is being made.
func (r *reach) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	return r.err
}
