package hotkeys

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
	"github.com/hotparam/hotparam/rules"
)

// PublisherConfig configures a [Publisher]. Namespace is required; a zero field
// otherwise means its default.
type PublisherConfig struct {
	// Namespace separates fleets that share a Redis: [A-Za-z0-9_-]+.
	Namespace string
	// Owner names the part of the set that this publisher owns: an aggregator's shard
	// or partition. Only the process that holds the owner writes. Default "statsd".
	Owner string
	// Cap bounds how many keys are published: the places of the set. Default 1,000.
	Cap int
	// Rules are the ids of the rules that share the places. Each rule is guaranteed an
	// equal part of them. Places that a rule does not need go to the keys of other rules
	// with the highest [published.Hot.Ratio]. Keys without a limit in force get only
	// places that limited keys leave. If Rules is empty, only limits and ratios decide.
	Rules []string
	// EntryTTL is how long an entry lasts unless it is renewed. Default 15 s.
	EntryTTL time.Duration
	// BeatTTL is how long all entries last after the last heartbeat of any publisher, which comes
	// each second. Default 5 s.
	BeatTTL time.Duration
	// Lease is for several processes that find the same keys and publish as one owner;
	// all of them must set it, for example to [DefaultLease]. One process holds the
	// owner until it stops or sends nothing for that long. A standby then takes over
	// within a quarter of the lease. Lease must be at least twice Timeout and at most a
	// minute. Zero, the default, means that a claim takes the owner at once.
	Lease time.Duration
	// Timeout bounds each call to Redis. After failures it is up to three times as
	// long, since new connections take longer. Default 500 ms.
	Timeout time.Duration
	// Inherit is called from [Publisher.Run] with the entries in Redis when this process takes
	// the owner, also by its first claim. They stay published until they are cooled with
	// [Publisher.Publish]. Without Inherit, entries that have cooled here are removed, and
	// entries that were never hot here are left to expire.
	Inherit func([]published.Hot)
	// Outcomes are published with the entries. If nil, none are.
	Outcomes Outcomes
	// Logger receives one line per event, never one per key. If nil, nothing is logged.
	Logger *slog.Logger
}

// Outcomes are what became of the requests of hot keys. It must be quick.
type Outcomes interface {
	// Of returns the outcomes for a key that became hot at since, or nil.
	Of(key rules.Key, since time.Time) *published.FleetOutcomes
	// Inherit is called with the entries in Redis when this process takes the owner, before it
	// writes them.
	Inherit(hot []published.Hot)
}

// Intervals and bounds of a publisher's work.
const (
	renewEvery = time.Second     // renewals of the entries and the heartbeat
	pruneEvery = 5 * time.Second // removals of expired entries
	trimEvery  = time.Minute     // removals of old changes from the stream

	maxEvents  = 10_000         // approximate number of changes that the stream keeps
	keepEvents = 24 * time.Hour // how long the stream keeps a change
)

func (c PublisherConfig) withDefaults() PublisherConfig {
	c.Owner = cmp.Or(c.Owner, "statsd")
	c.Cap = cmp.Or(c.Cap, 1000)
	c.EntryTTL = cmp.Or(c.EntryTTL, 15*time.Second)
	c.BeatTTL = cmp.Or(c.BeatTTL, 5*time.Second)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Logger = cmp.Or(c.Logger, noLog)
	return c
}

// maxOwner bounds an owner's name.
const maxOwner = 128

func (c PublisherConfig) validate(client redis.UniversalClient) error {
	if err := redisconfig.Check("PublisherConfig", c.Namespace, client, redisconfig.NamedDuration{Name: "Timeout", Length: c.Timeout}); err != nil {
		return err
	}
	switch {
	case len(c.Owner) > maxOwner || strings.ContainsFunc(c.Owner, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }):
		return fmt.Errorf("PublisherConfig.Owner %q: want at most %d visible ASCII characters and no colon", c.Owner, maxOwner)
	case c.Cap < 0:
		return fmt.Errorf("PublisherConfig.Cap %d must not be negative", c.Cap)
	case c.EntryTTL < time.Second:
		return fmt.Errorf("PublisherConfig.EntryTTL %v must be at least 1s", c.EntryTTL)
	case c.BeatTTL < 2*renewEvery: // or limits flicker
		return fmt.Errorf("PublisherConfig.BeatTTL %v must be at least %v", c.BeatTTL, 2*renewEvery)
	case c.Lease != 0 && (c.Lease < 2*c.Timeout || c.Lease > maxLease):
		return fmt.Errorf("PublisherConfig.Lease %v must be 0, or at least twice Timeout %v and at most %v", c.Lease, c.Timeout, maxLease)
	}
	return nil
}
