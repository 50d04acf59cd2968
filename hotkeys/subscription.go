package hotkeys

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscription listens to a channel and subscribes again after a failure. Its functions are
// called by the goroutine of run.
type subscription struct {
	client  redis.UniversalClient
	channel string
	timeout time.Duration // bound of a call
	poll    time.Duration // interval between pings; after quietFor of them without an answer the subscription ends
	// deaf receives a value when pushes do not arrive: run then subscribes again.
	deaf chan struct{}
	// whenDenied is the wait before the next try if Redis does not permit this user to subscribe.
	// Zero means the same wait as after other failures.
	whenDenied time.Duration

	onState  func(subscribed bool)
	onPush   func(payload string)
	onFailed func()
}

// quietFor is the number of polls after which a connection is considered dead if it has received
// nothing, not even the answer to a ping.
const quietFor = 4

// run listens until ctx ends.
func (s *subscription) run(ctx context.Context) {
	var trouble outage
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		subscribed, err := s.listen(ctx)
		if subscribed && time.Since(began) > maxBackoff { // it worked for a while
			trouble.succeeded()
		}
		if ctx.Err() == nil {
			s.onFailed()
		}
		wait, _ := trouble.recordFailure(err)
		if s.whenDenied > 0 && isDenied(err) {
			wait = s.whenDenied
		}
		timer.Reset(wait)
	}
}

// renew ends the current subscription, so that run subscribes again.
func (s *subscription) renew() { notify(s.deaf) }

// listen follows one subscription until it fails. It reports whether Redis confirmed it.
func (s *subscription) listen(ctx context.Context) (subscribed bool, err error) {
	dial, cancel := context.WithTimeout(ctx, maxPatience*s.timeout)
	sub := s.client.Subscribe(dial, s.channel) // Receive returns any error
	cancel()
	select { // a pending value was about the last subscription
	case <-s.deaf:
	default:
	}
	var heard atomic.Int64 // unix nanoseconds
	heard.Store(time.Now().UnixNano())
	over := make(chan struct{})
	var keeper sync.WaitGroup
	keeper.Go(func() { s.keepAlive(ctx, sub, &heard, over) })
	defer keeper.Wait()
	defer close(over)
	defer s.onState(false)
	for {
		msg, err := sub.Receive(ctx)
		if err != nil {
			return subscribed, err
		}
		heard.Store(time.Now().UnixNano())
		switch msg := msg.(type) {
		case *redis.Subscription:
			subscribed = true
			s.onState(true)
		case *redis.Message:
			s.onPush(msg.Payload)
		}
	}
}

// keepAlive pings the subscription. It closes it when listen has ended or the connection is dead,
// which makes Receive return.
func (s *subscription) keepAlive(ctx context.Context, sub *redis.PubSub, heard *atomic.Int64, ended <-chan struct{}) {
	defer sub.Close()
	ticker := time.NewTicker(s.poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			return
		case <-s.deaf:
			return
		case now := <-ticker.C:
			if now.Sub(time.Unix(0, heard.Load())) > quietFor*s.poll {
				return
			}
			ping, cancel := context.WithTimeout(ctx, s.timeout)
			err := sub.Ping(ping)
			cancel()
			if err != nil {
				return
			}
		}
	}
}

// notify sends a value unless one is waiting already.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
