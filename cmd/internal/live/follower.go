package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Follower passes the events of a namespace to one reader, each once and in order. Unlike with a
// [View], a slow reader loses no events: they wait in Redis until it reads on.
type Follower struct {
	cfg    Config
	client redis.UniversalClient
	tail   *tail
	outage loglimit.Outage
}

// Update is the result of one read of a [Follower].
type Update struct {
	Events []Event
	// Missed is a lower bound of the number of changes that Redis removed before they were read.
	Missed uint64
	// Lost reports whether Redis lost its state, or the entries after the last event that was
	// seen. Any number of events may be missing before Events.
	Lost bool
	// Err is why Redis cannot be read. The Follower tries again.
	Err error
}

// NewFollower returns a follower that begins after the event with this ID, or with the next
// event if after is empty. It starts nothing and makes no call. The caller closes the client
// once Run has returned.
func NewFollower(client redis.UniversalClient, cfg Config, after string) (*Follower, error) {
	if err := cfg.validate(client); err != nil {
		return nil, fmt.Errorf("follow events: %w", err)
	}
	var seen position
	if after != "" {
		var err error
		if seen, err = parsePosition(after); err != nil {
			return nil, fmt.Errorf("follow events after %.80q: %w", after, err)
		}
	}
	return &Follower{cfg: cfg.withDefaults(), client: client, tail: newTail(cfg.Namespace, seen, 0)}, nil
}

// Run calls handle for each update until ctx ends or handle returns an error, which Run then
// returns. Updates without events are passed when Redis can be read for the first time, when it
// becomes unavailable, and when it can be read again.
func (f *Follower) Run(ctx context.Context, handle func(Update) error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures, first := 0, true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		b, err := f.read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if failures == 0 {
				if err := handle(Update{Err: err}); err != nil {
					return err
				}
			}
			f.outage.Failed(f.cfg.Logger, outageLines, time.Now(), "cannot read events from Redis; trying again", "err", err)
			timer.Reset(base.Backoff(failures, f.cfg.Every/4, 2*f.cfg.Every))
			failures++
			continue
		}
		f.outage.Succeeded(f.cfg.Logger, time.Now(), "reading events from Redis again")
		if first || failures > 0 || len(b.events) > 0 || b.missed > 0 || b.lost {
			if err := handle(Update{Events: b.events, Missed: b.missed, Lost: b.lost}); err != nil {
				return err
			}
		}
		first, failures = false, 0
		timer.Reset(f.cfg.Every)
	}
}

// outageLines is the least time between log lines about outages of Redis.
const outageLines = 15 * time.Second

// read reads the streams once.
func (f *Follower) read(ctx context.Context) (streamRead, error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	err := hotkeys.Transact(ctx, f.client, func(tx redis.Pipeliner) { f.tail.queue(ctx, tx) })
	if err != nil && !errors.Is(err, hotkeys.ErrForeign) { // the publisher repairs a key of another type
		return streamRead{}, fmt.Errorf("read events: %w", err)
	}
	return f.tail.newEvents(ctx, f.client)
}
