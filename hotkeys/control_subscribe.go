package hotkeys

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscribe listens to the controls' channel until ctx ends. A user of Redis who may not
// subscribe still has the polls.
func (w *ControlWatcher) subscribe(ctx context.Context) {
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
		subscribed, err := w.listen(ctx)
		if subscribed && time.Since(began) > maxBackoff { // it worked for a while
			trouble.succeeded()
		}
		if ctx.Err() == nil {
			w.stats.failures.Add(1)
		}
		wait, _ := trouble.failed(err)
		if isDenied(err) {
			wait = deniedEvery
		}
		timer.Reset(wait)
	}
}

// listen follows one subscription until that fails.
func (w *ControlWatcher) listen(ctx context.Context) (subscribed bool, err error) {
	dial, cancel := context.WithTimeout(ctx, maxPatience*w.cfg.Timeout)
	sub := w.client.Subscribe(dial, w.layout.Control) // an error comes back from Receive
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
			return subscribed, err
		}
		heard.Store(time.Now().UnixNano())
		switch msg.(type) {
		case *redis.Subscription: // changes from before are not pushed over it
			subscribed = true
			w.stats.subscribed.Store(true)
		case *redis.Message:
			w.stats.pushes.Add(1)
		default:
			continue
		}
		select {
		case w.kick <- struct{}{}:
		default:
		}
	}
}

// keep pings the subscription. It closes the subscription when that is over or dead, which
// makes Receive return.
func (w *ControlWatcher) keep(ctx context.Context, sub *redis.PubSub, heard *atomic.Int64, over <-chan struct{}) {
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

// check subscribes again after a poll has found a change that was not pushed by the next poll:
// the subscription is at a server to which nobody publishes any more.
func (w *ControlWatcher) check(found bool) {
	pushes := w.stats.pushes.Load()
	if pushes != w.lastHeard || !w.stats.subscribed.Load() {
		w.unheard = 0
	} else if w.unheard > 0 {
		w.unheard = 0
		select {
		case w.deaf <- struct{}{}:
		default:
		}
	}
	if found && pushes == w.lastHeard && w.stats.subscribed.Load() {
		w.unheard = 1
	}
	w.lastHeard = pushes
}
