package redislimiter

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
)

const (
	// hintPing is the interval of pings on a subscription. A subscription that is silent for
	// three times as long is replaced.
	hintPing = time.Second
	// hintRetry is the pause before the next subscription.
	hintRetry = 200 * time.Millisecond
)

// listen receives hints that permits were released elsewhere, until ctx ends. It replaces a
// failed subscription; the first waiter's own asks make up for missed hints.
//
// The script of a release publishes a hint, "<process> <key>", if another process is next in
// Redis's line. It uses PUBLISH because Redis has no SPUBLISH before 7.
func (s *Semaphore) listen(ctx context.Context) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
		}
		s.handleHints(ctx)
		retry.Reset(hintRetry)
	}
}

// handleHints handles the hints of one subscription until it fails.
func (s *Semaphore) handleHints(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	sub := s.client.Subscribe(ctx, s.channel) // if this fails, Receive returns the error
	heard := make(chan struct{}, 1)
	var keeper sync.WaitGroup
	keeper.Go(func() { keepSubscription(ctx, sub, heard) })
	defer keeper.Wait()
	defer cancel()
	defer s.hearing.Store(false)
	for {
		message, err := sub.Receive(ctx)
		if err != nil {
			return
		}
		base.Notify(heard)
		switch m := message.(type) {
		case *redis.Subscription:
			s.hearing.Store(true)
		case *redis.Message:
			if key, ok := strings.CutPrefix(m.Payload, s.process+" "); ok {
				s.hint(ctx, key)
			}
		}
	}
}

// hint wakes the first waiter of a key, since the turn is this process's.
func (s *Semaphore) hint(ctx context.Context, key string) {
	call, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	s.handleTurn(call, key, turnOurs)
}

// keepSubscription closes a subscription when ctx ends, so that Receive returns, or when the
// subscription is dead without an error.
func keepSubscription(ctx context.Context, sub *redis.PubSub, heard <-chan struct{}) {
	defer sub.Close()
	ticker := time.NewTicker(hintPing)
	defer ticker.Stop()
	silent := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-heard:
			silent = 0
			continue
		case <-ticker.C:
		}
		if silent++; silent > 3 {
			return
		}
		ping, cancel := context.WithTimeout(ctx, hintPing)
		err := sub.Ping(ping)
		cancel()
		if err != nil {
			return
		}
	}
}
