package hotkeys

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/wire"
)

// subscribe listens to the channel until ctx ends, and subscribes again when a
// subscription fails.
func (w *Watcher) subscribe(ctx context.Context) {
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
		if w.listen(ctx) && time.Since(began) > maxBackoff { // it worked for a while
			trouble.succeeded()
		}
		if ctx.Err() == nil {
			w.stats.failures.Add(1)
		}
		wait, _ := trouble.failed(nil)
		timer.Reset(wait)
	}
}

// quietFor is for how many polls a subscription may receive nothing, not even the answer
// to a ping, before its connection is taken for dead.
const quietFor = 4

// listen queues the pushes of one subscription until that fails. It reports whether the
// subscription was made.
func (w *Watcher) listen(ctx context.Context) (subscribed bool) {
	dial, cancel := context.WithTimeout(ctx, maxPatience*w.cfg.Timeout)
	sub := w.client.Subscribe(dial, w.layout.Changed) // an error comes back from Receive
	cancel()
	select { // it was about the last subscription
	case <-w.deaf:
	default:
	}
	var heard atomic.Int64 // unix nanoseconds
	heard.Store(time.Now().UnixNano())
	over := make(chan struct{})
	var keeper sync.WaitGroup
	keeper.Go(func() { w.keep(ctx, sub, &heard, over) })
	defer keeper.Wait()
	defer close(over)
	defer w.stats.subscribed.Store(false)
	for {
		msg, err := sub.Receive(ctx)
		if err != nil {
			return subscribed
		}
		heard.Store(time.Now().UnixNano())
		switch msg := msg.(type) {
		case *redis.Subscription:
			subscribed = true
			w.stats.subscriptions.Add(1)
			w.stats.subscribed.Store(true)
			select { // changes from before the subscription are not pushed over it
			case w.kick <- struct{}{}:
			default:
			}
		case *redis.Message:
			w.stats.pushes.Add(1)
			if len(msg.Payload) > wire.MaxPush { // no publisher sends that much
				w.stats.malformed.Add(1)
				continue
			}
			select {
			case w.pushes <- msg.Payload:
			default:
				w.stats.dropped.Add(1)
			}
		}
	}
}

// keep pings the subscription. It closes the subscription when that is over or dead,
// which makes Receive return.
func (w *Watcher) keep(ctx context.Context, sub *redis.PubSub, heard *atomic.Int64, over <-chan struct{}) {
	defer sub.Close()
	ticker := time.NewTicker(w.cfg.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-w.deaf:
			return
		case now := <-ticker.C:
			if now.Sub(time.Unix(0, heard.Load())) > quietFor*w.cfg.Poll {
				return
			}
			ping, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
			err := sub.Ping(ping)
			cancel()
			if err != nil {
				return
			}
		}
	}
}

// hearing is what polls find out about the subscription. It is used by the polling
// goroutine only.
type hearing struct {
	subscription uint64 // the number of the subscription at the last poll
	settled      bool   // a poll has read the changes from before the subscription
	missed       bool   // the last poll found a change that was not pushed
	hinted       bool   // a push caused the present poll
	pushes       uint64 // received before the last poll
}

// check subscribes again if a change that a poll found has not been pushed by the next
// poll. The subscription is then at a server to which nobody publishes any more, such as
// a primary that was cut off from its successor.
func (w *Watcher) check() {
	h, now := &w.hearing, w.stats.subscriptions.Load()
	same := h.subscription == now && w.stats.subscribed.Load()
	if same && h.missed && h.pushes == w.stats.pushes.Load() {
		if unlogged, ok := w.lines.Allow(lineRate, time.Now()); ok {
			w.cfg.Logger.Info("changes are not pushed: subscribing again", "unlogged", unlogged)
		}
		select {
		case w.deaf <- struct{}{}:
		default:
		}
	}
	h.subscription, h.settled, h.missed, h.pushes = now, same, false, w.stats.pushes.Load()
}

// foundByPoll records that a poll found a change that should have been pushed.
func (w *Watcher) foundByPoll() { w.hearing.missed = w.hearing.settled && !w.hearing.hinted }
