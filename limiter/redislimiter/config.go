package redislimiter

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Store].
type Config struct {
	// Namespace keeps fleets apart: [A-Za-z0-9_-]+. Required.
	Namespace string
	// Timeout bounds a call whose context has no deadline. Default 50 ms.
	Timeout time.Duration
	// Jitter is the longest random delay added to the expiry of a key, so that keys created at
	// one time do not expire at one time. Default 0.
	Jitter time.Duration
	// Tag returns the hash tag of a key. Keys with the same tag are in one slot of a cluster
	// and are asked for by one script. By default each key has its own tag, which spreads them
	// best. Tag must not change while keys exist.
	Tag func(name, key string) string
	// Clock replaces Redis's clock. It returns the time since the Unix epoch, to the microsecond.
	// It is for tests and replays: instances with their own clocks would have to agree. States
	// still expire by Redis's clock, a minute after they have become those of new keys.
	Clock func() time.Duration
}

// defaultTimeout bounds a call whose context has no deadline.
const defaultTimeout = 50 * time.Millisecond

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	return c
}

// maxJitter catches typing errors.
const maxJitter = 24 * time.Hour

func (c Config) validate() error {
	switch {
	case !rules.ValidNamespace(c.Namespace):
		return fmt.Errorf("Config.Namespace %q: want one or more of A-Z a-z 0-9 _ -", c.Namespace)
	case c.Timeout < 0:
		return fmt.Errorf("Config.Timeout %v: must not be negative", c.Timeout)
	case c.Jitter < 0 || c.Jitter > maxJitter:
		return fmt.Errorf("Config.Jitter %v: want 0 to %v", c.Jitter, maxJitter)
	}
	return nil
}

var errDeadlines = errors.New("the client ignores the deadlines of contexts: set ContextTimeoutEnabled in its options")

// checkClient returns an error if an option of the client is wrong, as far as options are
// visible. Without ContextTimeoutEnabled an unavailable Redis costs seconds. A client that
// repeats calls that timed out does no harm: see once.
func checkClient(client redis.UniversalClient) error {
	enabled := true
	switch c := client.(type) {
	case nil:
		return errors.New("the client is nil")
	case *redis.Client:
		enabled = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		o := c.Options()
		enabled = o.ContextTimeoutEnabled
		if o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return errors.New("the client reads from replicas, which lag behind: unset ReadOnly, RouteByLatency and RouteRandomly")
		}
	case *redis.Ring:
		enabled = c.Options().ContextTimeoutEnabled
	}
	if !enabled {
		return errDeadlines
	}
	return nil
}
