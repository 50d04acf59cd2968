package redislimiter

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
)

// Config says how a [Store] keeps its keys, and how it talks to Redis.
type Config struct {
	// Namespace keeps fleets apart: [A-Za-z0-9_-]+. Required.
	Namespace string
	// Timeout bounds a call whose context has no deadline. Default [DefaultTimeout].
	Timeout time.Duration
	// Jitter is the most that the expiry of a key is put off, at random, so that keys
	// that were made at one time do not all go at one time. Default: none.
	Jitter time.Duration
	// Tag names the slot of a cluster in which a key of a limit is kept: all that have
	// the same tag are in one, and are asked for by one script. Default: each key has a
	// tag of its own, which spreads them best. It must not change while keys live.
	Tag func(name, key string) string
	// Clock takes the place of Redis's: the time since the Unix epoch, to the
	// microsecond. It is for tests and replays: with clocks of their own, instances
	// would have to agree. State then still expires on Redis's clock, a minute after it
	// is as new.
	Clock func() time.Duration
}

// DefaultTimeout bounds a call whose context has no deadline.
const DefaultTimeout = 50 * time.Millisecond

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	return c
}

// maxJitter is a bound for what is not meant.
const maxJitter = 24 * time.Hour

func (c Config) validate() error {
	switch {
	case !hotparam.ValidNamespace(c.Namespace):
		return fmt.Errorf("Config.Namespace %q: want one or more of A-Z a-z 0-9 _ -", c.Namespace)
	case c.Timeout < 0:
		return fmt.Errorf("Config.Timeout %v: must not be negative", c.Timeout)
	case c.Jitter < 0 || c.Jitter > maxJitter:
		return fmt.Errorf("Config.Jitter %v: want 0 to %v", c.Jitter, maxJitter)
	}
	return nil
}

var errDeadlines = errors.New("the client does not keep to the deadlines of contexts: set ContextTimeoutEnabled in its options")

// checkClient tells what is wrong with the options of a client, as far as they can be
// seen: without ContextTimeoutEnabled a Redis that is away costs seconds. That a
// client repeats what timed out does not matter here: see once.
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
