package kafkasink

import (
	"log/slog"
	"sync"
)

// reach is whether the cluster can be reached. It tells the log once when it
// cannot, and when it can again.
type reach struct {
	log *slog.Logger

	mu     sync.Mutex
	up     bool
	told   bool // that it is out of reach
	n      int  // partitions
	err    error
	closed bool
}

func (r *reach) lost(err error) {
	err = explain(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.err = false, err
	if !r.told && !r.closed {
		r.told = true
		r.log.Warn("kafka cannot be reached; requests are not affected", "err", err)
	}
}

func (r *reach) found(topic string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (!r.up || n != r.n) && !r.closed {
		r.log.Info("kafka is reached", "topic", topic, "partitions", n)
	}
	r.up, r.told, r.n, r.err = true, false, n, nil
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
