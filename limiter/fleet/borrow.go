package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Borrow takes n permits, as Take does, for a request that found none held. If the bucket may have
// some, it makes the stock settle, and waits in line for the answer: at most Lender.Patience, and
// no longer than ctx. While the Lender is unavailable, the outage policy decides at once.
func (s *Stock) Borrow(ctx context.Context, n int64) rules.Decision {
	w, d := s.Queue(n, 0)
	if w == nil {
		return d
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		w.expire()
	}
	return w.decision
}

// Shut returns the denial of n permits, if it is known that the bucket has none to give now.
func (s *Stock) Shut(n int64) (d rules.Decision, denied bool) {
	if left := s.shut.Load() - s.fleet.clock.now(); left > 0 {
		s.missed.Add(n)
		return s.denied(time.Duration(left)), true
	}
	return d, false
}

// hurry makes the stock due as soon as its pace allows, and reports whether that is earlier than
// it was. The caller holds mu, and wakes the fleet.
func (s *Stock) hurry(now int64) (earlier bool) {
	a, every := &s.account, period(s.quota.Load(), time.Duration(s.fleet.trip.Load()))
	soon := max(now, s.shut.Load())
	if a.sent > 0 {
		soon = max(soon, a.sent+int64(every)/2)
	}
	if a.isAway(now, lastsFor*every) || !s.fleet.Running() {
		s.goAlone()
	}
	if earlier = !a.asking && soon < a.next && a.failures == 0; earlier {
		a.next = soon
	}
	return earlier
}

// decideAlone decides on a request for n permits while the Lender is unavailable, by the bucket
// that has this instance's part.
func (s *Stock) decideAlone(b *limiter.Bucket, n int64) rules.Decision {
	switch s.outage {
	case rules.OutageOpen:
		s.outside.Add(n)
		return rules.Decision{Allowed: true, Reason: rules.ReasonOpen}
	case rules.OutageClosed:
		return rules.Decision{Reason: rules.ReasonUnavailable}
	}
	ask := limiter.Request{N: n, Keep: s.keep}
	if n == 0 {
		ask = limiter.Request{Kind: limiter.Peek, N: 1, Keep: s.keep}
	}
	got := b.Do(time.Duration(s.fleet.clock.now()), ask)
	s.outside.Add(got.Taken)
	return got.Decision
}

// goAlone makes this instance decide with its part of the quota, which begins empty. The caller
// holds mu.
func (s *Stock) goAlone() {
	if s.alone.Load() != nil {
		return
	}
	part, _ := limiter.Share(s.quota.Load(), max(s.account.instances, s.fleet.cfg.Instances()))
	part.Missing = part.Burst
	s.keep = Reserve(part.Burst, s.class, s.classes)
	s.alone.Store(s.part.join(s.quota.Load(), &part))
}

// endAlone ends what goAlone began. The caller holds mu.
func (s *Stock) endAlone() {
	if s.alone.Swap(nil) != nil {
		s.part.leave()
	}
}

// part is the bucket by which the stocks of a key decide while the Lender is unavailable. They
// share it, whatever their class of priority.
type part struct {
	mu     sync.Mutex
	users  int          // number of stocks that decide by it
	quota  *rules.Quota // of which it is a part
	bucket *limiter.Bucket
}

// join returns the bucket of a quota, made of its part unless a stock uses it already.
func (p *part) join(q, share *rules.Quota) *limiter.Bucket {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == 0 || p.quota != q {
		b, err := limiter.NewBucket(share, nil)
		if err != nil { // impossible: a part of a bucket is a bucket
			return nil
		}
		p.quota, p.bucket = q, b
	}
	p.users++
	return p.bucket
}

func (p *part) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
}
