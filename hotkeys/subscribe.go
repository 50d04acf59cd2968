package hotkeys

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// newSubscription returns the subscription to the changes of the hot set, which queues them.
func (w *Watcher) newSubscription() *subscription {
	return &subscription{
		client: w.client, channel: w.layout.Changed, timeout: w.cfg.Timeout, poll: w.cfg.Poll, deaf: make(chan struct{}, 1),
		onState: func(subscribed bool) {
			w.stats.Change(func(s *watcherStats) {
				if s.subscribed = subscribed; subscribed {
					s.subscriptions++
				}
			})
			if subscribed {
				notify(w.kick) // changes made before the subscription are not pushed on it
			}
		},
		onPush: func(payload string) {
			w.stats.Change(func(s *watcherStats) { s.Pushes++ })
			if len(payload) > published.MaxPush { // no publisher sends that much
				w.stats.Change(func(s *watcherStats) { s.Malformed++ })
				return
			}
			select {
			case w.pushes <- payload:
			default:
				w.stats.Change(func(s *watcherStats) { s.Dropped++ })
			}
		},
		onFailed: func() { w.stats.Change(func(s *watcherStats) { s.Errors++ }) },
	}
}

// hearing is the polls' knowledge about the subscription. It is used by the polling goroutine
// only.
type hearing struct {
	subscription uint64 // number of the subscription at the last poll
	settled      bool   // a poll has read the changes made before the subscription
	missed       bool   // the last poll found a change that was not pushed
	hinted       bool   // a push caused the present poll
	pushes       uint64 // number received before the last poll
}

// check subscribes again if a change that a poll found has not been pushed by the next poll. The
// subscription is then at a server on which no one publishes any more, such as a primary that was
// cut off from its successor.
func (w *Watcher) check() {
	h, now := &w.hearing, w.stats.Load()
	same := h.subscription == now.subscriptions && now.subscribed
	if same && h.missed && h.pushes == now.Pushes {
		if unlogged, ok := w.lines.Allow(lineRate, time.Now()); ok {
			w.cfg.Logger.Info("changes are not pushed: subscribing again", "unlogged", unlogged)
		}
		w.subscription.renew()
	}
	h.subscription, h.settled, h.missed, h.pushes = now.subscriptions, same, false, now.Pushes
}

// foundByPoll records that a poll found a change that should have been pushed.
func (w *Watcher) foundByPoll() { w.hearing.missed = w.hearing.settled && !w.hearing.hinted }
