package hotkeys

// newSubscription returns the subscription to the controls' channel: what is pushed says only
// that something has changed. A user of Redis who may not subscribe still has the polls.
func (w *ControlWatcher) newSubscription() *subscription {
	return &subscription{
		client: w.client, channel: w.layout.Control, timeout: w.cfg.Timeout, poll: w.cfg.Poll, deaf: make(chan struct{}, 1), whenDenied: deniedEvery,
		onState: func(subscribed bool) {
			w.stats.Change(func(s *controlStats) { s.subscribed = subscribed })
			if subscribed {
				notify(w.kick) // changes from before it are not pushed over it
			}
		},
		onPush: func(string) {
			w.stats.Change(func(s *controlStats) { s.Pushes++ })
			notify(w.kick)
		},
		onFailed: func() { w.stats.Change(func(s *controlStats) { s.Errors++ }) },
	}
}

// check subscribes again after a poll has found a change that was not pushed by the next poll:
// the subscription is at a server to which nobody publishes any more.
func (w *ControlWatcher) check(found bool) {
	now := w.stats.Load()
	if now.Pushes != w.lastHeard || !now.subscribed {
		w.unheard = 0
	} else if w.unheard > 0 {
		w.unheard = 0
		w.subscription.renew()
	}
	if found && now.Pushes == w.lastHeard && now.subscribed {
		w.unheard = 1
	}
	w.lastHeard = now.Pushes
}
