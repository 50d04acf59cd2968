package meter

import (
	"sync"
	"time"
)

// Wait measures the time for which a request waits for its client: while its body is read and
// its response is written. That is no use of a back end.
// A nil Wait measures nothing.
type Wait struct {
	mu     sync.Mutex // guards the rest; a proxy reads and writes at a time
	waits  int        // reads and writes under way
	since  time.Time  // when the first of them began
	waited time.Duration
}

func (c *Wait) begin() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.waits++; c.waits == 1 {
		c.since = time.Now()
	}
	c.mu.Unlock()
}

func (c *Wait) end() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.waits--; c.waits == 0 {
		c.waited += time.Since(c.since)
	}
	c.mu.Unlock()
}

// Total returns the time waited so far.
func (c *Wait) Total() time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits > 0 {
		return c.waited + time.Since(c.since)
	}
	return c.waited
}
