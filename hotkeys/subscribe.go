package hotkeys

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/wire"
)

// subscribe listens to the channel until ctx ends, over one subscription after
// the other.
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
		if w.listen(ctx) && time.Since(began) > maxBackoff { // it did work
			trouble.succeeded()
		}
		if ctx.Err() == nil {
			w.stats.failures.Add(1)
		}
		wait, _ := trouble.failed(nil)
		timer.Reset(wait)
	}
}

// quietFor is after how many polls without a word from Redis, pings included,
// a subscription is given up: its connection may be dead without telling.
const quietFor = 4

// listen hands on what comes over one subscription until that fails. It tells
// whether the subscription was made at all.
func (w *Watcher) listen(ctx context.Context) (subscribed bool) {
	dial, cancel := context.WithTimeout(ctx, maxPatience*w.cfg.Timeout)
	sub := w.client.Subscribe(dial, w.layout.Changed) // an error comes back from Receive
	cancel()
	select { // that was said of the one before
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
			select { // what was published before now did not come over this subscription
			case w.kick <- struct{}{}:
			default:
			}
		case *redis.Message:
			w.stats.pushes.Add(1)
			if len(msg.Payload) > wire.MaxPush { // none of ours
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

// keep pings the subscription, and closes it at its end: that is what makes
// Receive return.
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

// hearing is what the polls tell of the subscription. Of the polling goroutine
// alone.
type hearing struct {
	subscription uint64 // the one during the last poll
	settled      bool   // a poll has made up for what came before it
	missed       bool   // the last poll found a change that no push had brought
	hinted       bool   // it is a push that has the poll look
	pushes       uint64 // received before the last poll
}

// check subscribes again when a change that a poll found has not been pushed by the
// next one: then the subscription is at a server that nobody publishes to any more,
// as a primary is that was cut off from its successor.
func (w *Watcher) check() {
	h, now := &w.hearing, w.stats.subscriptions.Load()
	same := h.subscription == now && w.stats.subscribed.Load()
	if same && h.missed && h.pushes == w.stats.pushes.Load() {
		if unlogged, ok := w.lines.Allow(lineRate, time.Now()); ok {
			w.cfg.Logger.Info("changes come, and their pushes do not: subscribing again", "unlogged", unlogged)
		}
		select {
		case w.deaf <- struct{}{}:
		default:
		}
	}
	h.subscription, h.settled, h.missed, h.pushes = now, same, false, w.stats.pushes.Load()
}

// foundByPoll notes a change that ought to have been pushed.
func (w *Watcher) foundByPoll() { w.hearing.missed = w.hearing.settled && !w.hearing.hinted }
