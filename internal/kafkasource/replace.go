package kafkasource

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// runClients runs one client after the other until ctx ends or the brokers refuse. A client is
// replaced if it is stuck or the topic was resized. runClients returns the last client, which the
// caller must close with leaveGroup.
func (s *Source) runClients(ctx context.Context) (*groupClient, error) {
	var lines loglimit.Limit
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		client, err := s.runClient(ctx)
		var stuck *stuckError
		now := time.Now()
		switch {
		case errors.Is(err, errResized): // watchSize has reported it
		case errors.As(err, &stuck):
			stuck.count.Add(1)
			if _, ok := lines.Allow(loglimit.LineRate{Burst: 1, Every: restartLog}, now); ok {
				s.cfg.Log.Warn("replacing the Kafka client; partitions are stalled until it has joined the group", "why", stuck.what)
			}
		default:
			return client, err
		}
		if now.Sub(began) > steadyFor {
			failures = 0
		}
		if !s.abandon(ctx, client) {
			break
		}
		base.WaitBackoff(ctx, failures, firstRestart, lastRestart)
	}
	return nil, nil
}

// runClient joins the group with a new client, and works until ctx ends, the brokers refuse it,
// it is stuck or the topic was resized.
func (s *Source) runClient(ctx context.Context) (*groupClient, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	dog := &watchdog{source: s, end: end}
	dog.groupAt.Store(time.Now().UnixNano())
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	joined, err := s.connect(append(s.groupOptions(dog), kgo.WithContext(life))...)
	if err != nil {
		cancel()
		return nil, err
	}
	client := &groupClient{joined, cancel}
	var loops sync.WaitGroup
	loops.Go(func() { s.watchEnds(ctx, joined) })
	loops.Go(func() { s.watchSize(ctx, joined, end) })
	loops.Go(func() { s.commitPositions(ctx, joined) })
	loops.Go(func() { dog.run(ctx) })
	err = s.poll(ctx, joined)
	wait := s.cfg.Connection.Timeout
	var stuck *stuckError
	if why := context.Cause(ctx); errors.As(why, &stuck) || errors.Is(why, errResized) {
		dog.replaced.Store(true)
		s.standStill()
		err, wait = why, endsTimeout
	}
	end(err)
	// A metadata request has no deadline other than the client's context.
	late := time.AfterFunc(wait, cancel)
	loops.Wait()
	late.Stop()
	return client, err
}

// standStill stops all workers until the group assigns partitions to the next client.
func (s *Source) standStill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if !w.isLost.Swap(true) {
			s.stats.Lost.Add(1)
		}
	}
}

// abandon ends a stuck client. It waits at most as long as leaving the group takes. If too many
// clients have not ended, it first waits until one has. It reports whether ctx has not ended.
func (s *Source) abandon(ctx context.Context, client *groupClient) bool {
	select {
	case s.abandoned <- struct{}{}:
	case <-ctx.Done():
		s.leaveGroup(ctx, client)
		return false
	}
	done := make(chan struct{})
	go func() {
		defer func() { <-s.abandoned }()
		defer close(done)
		s.leaveGroup(ctx, client)
	}()
	limit := time.NewTimer(s.cfg.Connection.Timeout + time.Second)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		s.stats.Abandoned.Add(1)
	case <-ctx.Done():
	}
	return true
}

// awaitAbandoned waits for replaced clients, at most as long as leaving the group takes.
func (s *Source) awaitAbandoned() {
	limit := time.NewTimer(s.cfg.Connection.Timeout + time.Second)
	defer limit.Stop()
	for range maxAbandoned {
		select {
		case s.abandoned <- struct{}{}:
		case <-limit.C:
			return
		}
	}
}
