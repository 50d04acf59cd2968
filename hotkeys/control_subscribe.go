package hotkeys

// newSubscription returns the subscription to the controls' channel. A push reports only that
// something has changed. A Redis user who may not subscribe still has the polls.
func (w *ControlWatcher) newSubscription() *subscription {
	return &subscription{
		client: w.client, channel: w.layout.Control, timeout: w.cfg.Timeout, poll: w.cfg.Poll, deaf: make(chan struct{}, 1), whenDenied: deniedEvery,
		onState: func(subscribed bool) {
			w.stats.Change(func(s *controlStats) { s.subscribed = subscribed })
			if subscribed {
				notify(w.kick) // changes made before the subscription are not pushed on it
			}
		},
		onPush: func(string) {
			w.stats.Change(func(s *controlStats) { s.Pushes++ })
			notify(w.kick)
		},
		onFailed: func() { w.stats.Change(func(s *controlStats) { s.Errors++ }) },
	}
}

// check subscribes again if a change that a poll found has not been pushed by the next poll. The
// subscription is then at a server on which no one publishes any more.
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
