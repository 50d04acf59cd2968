package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/redisconfig"
)

// Config configures a [Sender]. Namespace, URL, Secret and Publishes are required.
type Config struct {
	Namespace string
	// URL returns the URL to post to. It is called for each request, so that the URL can change.
	// Its error must not reveal the URL.
	URL func() (string, error)
	// Secret returns the signing key, or empty for none. It is called for each
	// request.
	Secret func() (string, error)
	// Slack selects messages for people, of up to 20 events each.
	Slack bool
	// Publishes reports whether this process publishes hot keys now. A standby sends nothing.
	Publishes func() bool
	// UserAgent is sent with each request. Default "hotparam".
	UserAgent string
	// Logger receives a line when requests fail and when they succeed again.
	Logger *slog.Logger

	// For tests. Zero means the default of each.
	lease, timeout, patience, maxAge, least, longest, every time.Duration
	queue                                                   int
	transport                                               *http.Transport
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.lease, 10 * time.Second}, {&c.timeout, 10 * time.Second}, {&c.patience, 15 * time.Minute}, {&c.maxAge, time.Hour},
		{&c.least, 500 * time.Millisecond}, {&c.longest, time.Minute}, {&c.every, 500 * time.Millisecond},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	c.queue = cmp.Or(c.queue, 1000)
	c.UserAgent = cmp.Or(c.UserAgent, "hotparam")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.transport == nil { // its own connections, which close with the sender
		c.transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	return c
}

func (c Config) validate(client redis.UniversalClient) error {
	if err := redisconfig.Check("Config", c.Namespace, client); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	if c.URL == nil || c.Secret == nil || c.Publishes == nil {
		return errors.New("webhook: Config.URL, Secret and Publishes are required")
	}
	return nil
}

// Stats are the state of a sender, and its counters since it was created.
type Stats struct {
	// Sending reports whether this process sends. One aggregator of each namespace does.
	Sending bool
	Queued  int    // events that wait
	Posted  uint64 // events accepted by the receiver
	Retries uint64 // failed requests that were retried
	// Events that were not posted, by reason:
	QueueFull uint64 // the receiver accepted them too slowly
	Refused   uint64 // the receiver refused them permanently, with a status of 3xx or 4xx
	GaveUp    uint64 // the receiver did not accept them for a quarter of an hour
	TooOld    uint64 // they happened more than an hour ago, for example while no aggregator could send
	// Missed counts changes that Redis removed before they were read.
	Missed uint64
}

type counters struct {
	sending                              atomic.Bool
	queued                               atomic.Int64
	posted, retries, full, refused, gave atomic.Uint64
	old, missed                          atomic.Uint64
}

// Stats returns the state and the counters. It is safe for concurrent use.
func (s *Sender) Stats() Stats {
	c := &s.count
	return Stats{
		Sending: c.sending.Load(), Queued: int(c.queued.Load()), Posted: c.posted.Load(), Retries: c.retries.Load(),
		QueueFull: c.full.Load(), Refused: c.refused.Load(), GaveUp: c.gave.Load(), TooOld: c.old.Load(), Missed: c.missed.Load(),
	}
}
