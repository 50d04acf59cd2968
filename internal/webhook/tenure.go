package webhook

import (
	"context"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/live"
)

// tenure is the time in which this process has the right to send.
type tenure struct {
	*Sender
	end context.CancelFunc

	mu       sync.Mutex
	queue    []live.Event // that wait
	position string       // the last event that was posted or dropped
	wake     chan struct{}
}

// send posts what happened after the position for as long as this process has the right to.
func (s *Sender) send(ctx context.Context, position string) {
	follower, err := live.NewFollower(s.client, live.Config{Namespace: s.cfg.Namespace, Every: s.cfg.every, Logger: s.cfg.Logger}, position)
	if err != nil { // the script returns positions only
		s.cfg.Logger.Error("the webhook cannot send", "err", err)
		return
	}
	life, end := context.WithCancel(ctx)
	t := &tenure{Sender: s, end: end, position: position, wake: make(chan struct{}, 1)}
	s.count.sending.Store(true)
	s.cfg.Logger.Info("the webhook sends from here", "after", position)
	var work sync.WaitGroup
	work.Go(func() { _ = follower.Run(life, t.add) })
	work.Go(func() { t.keep(life) })
	t.post(life)
	end()
	work.Wait()
	s.count.sending.Store(false)
	s.count.queued.Store(0)
	// Another may begin at once. An end of ctx must not keep us from saying so.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.lease/4)
	defer cancel()
	_, err = s.hold(last, t.at(), true)
	s.logRedis(ctx, err)
}

// keep extends the right until ctx ends. It ends the tenure if another has the right, if Redis
// did not answer for so long that another may have, or if this process publishes no more.
func (t *tenure) keep(ctx context.Context) {
	defer t.end()
	ticker := time.NewTicker(t.cfg.lease / 4)
	defer ticker.Stop()
	sure := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := time.Now()
		held, err := t.hold(ctx, t.at(), false)
		t.logRedis(ctx, err)
		switch {
		case err == nil && held == "", !t.cfg.Publishes():
			return
		case err == nil:
			sure = asked
		case time.Since(sure) > t.cfg.lease-t.cfg.lease/4:
			return
		}
	}
}

// add puts events into the queue, and drops the oldest of more than it holds.
func (t *tenure) add(u live.Update) error {
	t.count.missed.Add(u.Missed)
	t.mu.Lock()
	t.queue = append(t.queue, u.Events...)
	if over := len(t.queue) - t.cfg.queue; over > 0 {
		t.position = t.queue[over-1].ID
		t.queue = append([]live.Event(nil), t.queue[over:]...)
		t.count.full.Add(uint64(over))
		t.logDrop("the receiver takes them too slowly", over)
	}
	t.count.queued.Store(int64(len(t.queue)))
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return nil
}

// first returns the next events for one request, which stay in the queue.
func (t *tenure) first() []live.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 1
	if t.cfg.Slack {
		n = perMessage
	}
	return append([]live.Event(nil), t.queue[:min(n, len(t.queue))]...)
}

// done removes events up to this one from the queue.
func (t *tenure) done(last *live.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for n < len(t.queue) && t.queue[n].Compare(last) <= 0 {
		n++
	}
	t.queue = t.queue[n:]
	if len(t.queue) == 0 {
		t.queue = nil
	}
	if n > 0 { // otherwise they were dropped, and the position is beyond
		t.position = last.ID
	}
	t.count.queued.Store(int64(len(t.queue)))
}

func (t *tenure) at() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.position
}

func (s *Sender) logDrop(why string, n int) {
	if unlogged, ok := s.drops.Allow(dropLines, time.Now()); ok {
		s.cfg.Logger.Warn("the webhook drops events", "why", why, "events", n, "unlogged", unlogged)
	}
}
