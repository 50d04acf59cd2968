package hotkeys

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
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
	// kick receives a value when a subscription begins, since changes made before are not pushed.
	kick chan<- struct{}
	// whenDenied is the wait before the next try if Redis does not permit this user to subscribe.
	// Zero means the same wait as after other failures.
	whenDenied time.Duration

	onPush   func(payload string)
	onFailed func()

	heard base.Guarded[received]
	polls struct { // knowledge of the polling goroutine, which calls check and foundByPoll
		subscription uint64 // number of the subscription at the last poll
		pushes       uint64 // number received before the last poll
		settled      bool   // a poll has read the changes made before the subscription
		missed       bool   // the last poll found a change that was not pushed
	}
}

// received counts what a subscription has received.
type received struct {
	subscribed    bool // whether there is a subscription now
	subscriptions uint64
	pushes        uint64
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
		if s.whenDenied > 0 && IsDenied(err) {
			wait = s.whenDenied
		}
		timer.Reset(wait)
	}
}

// check is called at each poll. It subscribes again, and returns true, if a change that the last
// poll found has not been pushed since. The subscription is then at a server on which no one
// publishes any more, such as a primary that was cut off from its successor.
func (s *subscription) check() (renewed bool) {
	now, last := s.heard.Load(), &s.polls
	same := last.subscription == now.subscriptions && now.subscribed
	if renewed = same && last.missed && last.pushes == now.pushes; renewed {
		base.Notify(s.deaf)
	}
	last.subscription, last.pushes, last.settled, last.missed = now.subscriptions, now.pushes, same, false
	return renewed
}

// foundByPoll records that a poll, which no push has caused, found a change.
func (s *subscription) foundByPoll() { s.polls.missed = s.polls.settled }

// listen follows one subscription until it fails. It reports whether Redis confirmed it.
func (s *subscription) listen(ctx context.Context) (subscribed bool, err error) {
	dial, cancel := context.WithTimeout(ctx, maxPatience*s.timeout)
	sub := s.client.Subscribe(dial, s.channel) // Receive returns any error
	cancel()
	select { // a pending value was about the last subscription
	case <-s.deaf:
	default:
	}
	var alive atomic.Int64 // unix nanoseconds
	alive.Store(time.Now().UnixNano())
	over := make(chan struct{})
	var keeper sync.WaitGroup
	keeper.Go(func() { s.keepAlive(ctx, sub, &alive, over) })
	defer keeper.Wait()
	defer close(over)
	defer s.heard.Change(func(r *received) { r.subscribed = false })
	for {
		msg, err := sub.Receive(ctx)
		if err != nil {
			return subscribed, err
		}
		alive.Store(time.Now().UnixNano())
		switch msg := msg.(type) {
		case *redis.Subscription:
			subscribed = true
			s.heard.Change(func(r *received) { r.subscribed, r.subscriptions = true, r.subscriptions+1 })
			base.Notify(s.kick)
		case *redis.Message:
			s.heard.Change(func(r *received) { r.pushes++ })
			s.onPush(msg.Payload)
		}
	}
}

// keepAlive pings the subscription. It closes it when listen has ended or the connection is dead,
// which makes Receive return.
func (s *subscription) keepAlive(ctx context.Context, sub *redis.PubSub, alive *atomic.Int64, ended <-chan struct{}) {
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
			if now.Sub(time.Unix(0, alive.Load())) > quietFor*s.poll {
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
