package hotkeys

import (
	"context"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
)

// sendEvery is the least time between two entries that an instance sends.
const sendEvery = 50 * time.Millisecond

// invalidated is a target or a tag whose answers are invalidated.
type invalidated struct {
	tag bool
	id  uint64
}

// pendingInvalidations holds the unsent invalidations. Beyond [published.MaxInvalidation] all
// answers are invalidated instead.
type pendingInvalidations struct {
	kick chan struct{} // some are pending

	mu        sync.Mutex
	all       bool
	set       map[invalidated]struct{}
	taken     int // number that takeAll has returned and that may not have been sent
	overflows uint64
}

func (p *pendingInvalidations) add(i invalidated) {
	p.mu.Lock()
	p.addLocked(i)
	p.mu.Unlock()
	base.Notify(p.kick)
}

func (p *pendingInvalidations) addLocked(i invalidated) {
	if p.all {
		return
	}
	if p.set == nil {
		p.set = make(map[invalidated]struct{})
	}
	if p.set[i] = struct{}{}; len(p.set) > published.MaxInvalidation {
		p.all, p.set = true, nil
		p.overflows++
	}
}

// takeAll returns all that is pending. ok is false if nothing is. Each call is followed by one of
// settle.
func (p *pendingInvalidations) takeAll() (i published.Invalidation, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.All = p.all
	for w := range p.set {
		if w.tag {
			i.Tags = append(i.Tags, w.id)
		} else {
			i.Targets = append(i.Targets, w.id)
		}
	}
	p.taken = p.waiting()
	p.all, p.set = false, nil
	return i, p.taken > 0
}

// settle ends the sending of what takeAll has returned. Unsent invalidations are pending again.
func (p *pendingInvalidations) settle(i *published.Invalidation, sent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = 0
	if sent {
		return
	}
	if i.All {
		p.all, p.set = true, nil
	}
	for _, id := range i.Targets {
		p.addLocked(invalidated{id: id})
	}
	for _, id := range i.Tags {
		p.addLocked(invalidated{tag: true, id: id})
	}
	base.Notify(p.kick)
}

// waiting returns the number of targets and tags in the set. All answers count as one.
func (p *pendingInvalidations) waiting() int {
	if p.all {
		return 1
	}
	return len(p.set)
}

func (p *pendingInvalidations) counts() (waiting int, overflows uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting() + p.taken, p.overflows
}

// send writes what waits to the stream, at most once each sendEvery, until ctx ends, and then
// once more.
func (v *Invalidator) send(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-v.pending.kick:
			_ = base.Sleep(ctx, v.sendPending(ctx))
		}
	}
	v.sendPending(context.WithoutCancel(ctx))
}

// sendPending writes what waits as one entry. It returns how long to wait before the next.
func (v *Invalidator) sendPending(ctx context.Context) (wait time.Duration) {
	i, ok := v.pending.takeAll()
	if !ok {
		return 0
	}
	i.Sender = v.id
	call, cancel := context.WithTimeout(ctx, v.sending.timeout(v.cfg.Timeout))
	added, err := appendInvalidation(call, v.client, v.layout, &i)
	cancel()
	v.pending.settle(&i, added)
	if !added {
		if ctx.Err() != nil {
			return 0
		}
		return v.recordSendFailure(err)
	}
	v.stats.Change(func(s *InvalidatorStats) { s.Sent++ })
	if v.sending.succeeded() {
		v.cfg.Logger.Info("sending invalidations of cached answers again")
	}
	if err != nil {
		v.recordError()
		v.silent.Warn(deniedRate, v.cfg.Logger, "cannot notify others of invalidations of cached answers, so these take effect with the next poll; docs/REDIS.md has the rights", "err", err)
	}
	return sendEvery
}

// recordSendFailure records a failure and returns how long to wait before the next try.
func (v *Invalidator) recordSendFailure(err error) time.Duration {
	v.recordError()
	wait, begins := v.sending.recordFailure(err)
	if IsDenied(err) {
		v.sending.warn(&v.denied, deniedRate, v.cfg.Logger, "this process may not send invalidations of cached answers, so others keep theirs; docs/REDIS.md has the rights")
		return deniedEvery
	}
	if begins {
		v.sending.warn(&v.lines, lineRate, v.cfg.Logger, "cannot send invalidations of cached answers; retrying")
	}
	return max(sendEvery, wait)
}
