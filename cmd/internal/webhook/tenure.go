package webhook

import (
	"context"
	"sync"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/base"
)

// tenure is a period in which this process has the right to send.
type tenure struct {
	*Sender
	end context.CancelFunc

	mu       sync.Mutex
	queue    []live.Event // events that wait
	position string       // last event that was posted or dropped
	wake     chan struct{}
}

// send posts the events after the position while this process has the right to.
func (s *Sender) send(ctx context.Context, position string) {
	follower, err := live.NewFollower(s.client, live.Config{Namespace: s.cfg.Namespace, Every: s.cfg.every, Logger: s.cfg.Logger}, position)
	if err != nil { // the script returns valid positions only
		s.cfg.Logger.Error("the webhook cannot send", "err", err)
		return
	}
	life, end := context.WithCancel(ctx)
	t := &tenure{Sender: s, end: end, position: position, wake: make(chan struct{}, 1)}
	s.count.sending.Store(true)
	s.cfg.Logger.Info("the webhook sends from here", "after", position)
	var work sync.WaitGroup
	work.Go(func() { _ = follower.Run(life, t.add) })
	work.Go(func() { t.extendRight(life) })
	t.post(life)
	end()
	work.Wait()
	s.count.sending.Store(false)
	s.count.queued.Store(0)
	// Release the right, so that another sender can begin at once, even if ctx has ended.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.lease/4)
	defer cancel()
	s.logRedis(ctx, s.releaseRight(last, t.currentPosition()))
}

// extendRight extends the right until ctx ends. It ends the tenure if another sender has the right, if
// Redis has not answered for so long that another may have it, or if this process no longer
// publishes.
func (t *tenure) extendRight(ctx context.Context) {
	defer t.end()
	sure := time.Now()
	for range base.Ticks(ctx, t.cfg.lease/4) {
		asked := time.Now()
		held, err := t.acquireRight(ctx, t.currentPosition())
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

// add adds events to the queue. If the queue is full, it drops the oldest.
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

// first returns the next events for one request. They stay in the queue.
func (t *tenure) first() []live.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 1
	if t.cfg.Slack {
		n = perMessage
	}
	return append([]live.Event(nil), t.queue[:min(n, len(t.queue))]...)
}

// done removes the events up to last from the queue.
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
	if n > 0 { // otherwise they were dropped, and the position is beyond last
		t.position = last.ID
	}
	t.count.queued.Store(int64(len(t.queue)))
}

func (t *tenure) currentPosition() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.position
}

func (s *Sender) logDrop(why string, n int) {
	if unlogged, ok := s.dropLog.Allow(dropLines, time.Now()); ok {
		s.cfg.Logger.Warn("the webhook drops events", "why", why, "events", n, "unlogged", unlogged)
	}
}
