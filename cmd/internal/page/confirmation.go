package page

import (
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

const (
	// confirmationLife is how long a person may look at what an action would have done.
	confirmationLife = 2 * time.Minute
	// Bounds of the open confirmations. A person who opens more loses the oldest.
	maxConfirmations = 1000
	maxOpenByPerson  = 20
)

// confirmation is an order that its author has seen the effect of. It is good for one action.
type confirmation struct {
	author string
	key    rules.Key
	action published.ControlAction // empty for a release
	until  time.Time
}

// confirmations are the open ones. They are safe for concurrent use.
type confirmations struct {
	mu   sync.Mutex
	open map[string]confirmation // by a secret id
}

func newConfirmations() *confirmations { return &confirmations{open: make(map[string]confirmation)} }

// add opens a confirmation and returns its id.
func (c *confirmations) add(made confirmation, now time.Time) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made.until = now.Add(confirmationLife)
	open, oldest := 0, ""
	for id, other := range c.open {
		switch {
		case !now.Before(other.until):
			delete(c.open, id)
		case other.author == made.author:
			open++
			if oldest == "" || other.until.Before(c.open[oldest].until) {
				oldest = id
			}
		}
	}
	if open >= maxOpenByPerson {
		delete(c.open, oldest)
	}
	if len(c.open) >= maxConfirmations {
		return "", errors.New("too many confirmations are open: try again in a minute")
	}
	id := rand.Text()
	c.open[id] = made
	return id, nil
}

// take ends a confirmation and returns it, if it is one of the author's and still good.
func (c *confirmations) take(id, author string, now time.Time) (confirmation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken, found := c.open[id]
	if !found || taken.author != author || !now.Before(taken.until) {
		return confirmation{}, false
	}
	delete(c.open, id)
	return taken, true
}
