package limiter

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// deferredState is the state of a key in a [Deferred].
type deferredState struct {
	mu     sync.Mutex
	gone   bool // dropped from its shard: look it up again
	quota  *rules.Quota
	told   rules.Decision // by the backend's last answer
	at     time.Time      // when that was asked; zero if nothing is known
	left   int64          // of what remained then; below 0 if more was charged
	unsent int64          // taken here and not charged yet
	flying int64          // being charged
	batch  int64          // the Mark of what is unsent; 0 if nothing is

	sent [4]deferredBatch // the last batches that were charged, or are being charged
	next int              // the index in sent of the next one
	back []deferredReturn // returned while its batch was being charged
}

// deferredBatch is what was taken here between two refreshes, and is charged in one call.
type deferredBatch struct {
	name   int64 // 0 if there is none
	flying bool
	charge Ask // a Return of the Charge
}

// giveBack returns the Ask that gives back n permits of the charge. It is never the last
// one of the charge, since Returns may overtake each other on their way.
func (b *deferredBatch) giveBack(n int64) Ask {
	ask := b.charge
	ask.N, ask.Keep = min(n, ask.N), ask.N
	return ask
}

// deferredReturn is n permits of a batch to return.
type deferredReturn struct{ batch, n int64 }

const (
	// maxUnsent bounds what is charged at once, far from any overflow.
	maxUnsent = 1 << 40
	// maxReturns bounds the returns that wait until their batch has been charged.
	maxReturns = 64
)

func (s *deferredState) result(now time.Time) Result {
	d := s.told
	d.Allowed, d.Reason, d.Remaining, d.RetryAfter, d.Delay = true, rules.ReasonWithin, max(s.left, 0), 0, 0
	d.ResetAfter = max(0, d.ResetAfter-now.Sub(s.at))
	return Result{Decision: d}
}

// knows reports whether there is an answer under q that is not older than maxAge.
func (s *deferredState) knows(q *rules.Quota, now time.Time, maxAge time.Duration) bool {
	return !s.at.IsZero() && now.Sub(s.at) < maxAge && (s.quota == q || *s.quota == *q)
}

// has reports whether as much is left as op asks for.
func (s *deferredState) has(op *Op) bool { return s.left >= op.N && s.left-op.N >= op.Keep }

// fly turns what is unsent into a batch that is being charged.
func (s *deferredState) fly() (n, batch int64) {
	n, batch = s.unsent, s.batch
	s.unsent, s.batch = 0, 0
	if n > 0 {
		s.flying += n
		s.sent[s.next] = deferredBatch{name: batch, flying: true}
		s.next = (s.next + 1) % len(s.sent)
	}
	return n, batch
}

// find returns the batch of that name if it is among the last ones, else nil.
func (s *deferredState) find(name int64) *deferredBatch {
	for i := range s.sent {
		if s.sent[i].name == name && name != 0 {
			return &s.sent[i]
		}
	}
	return nil
}

// giveBack executes a Return of what was taken here: from what is not charged yet, or else
// from its charge. It reports whether it is done, or the ask has to be sent.
func (d *Deferred) giveBack(s *deferredState, a *deferredAsk) (Result, bool) {
	op := &a.op
	sent := s.find(op.Mark)
	switch {
	case op.Mark == s.batch && s.batch != 0:
		n := min(op.N, s.unsent)
		s.unsent -= n
		s.left += n
	case sent == nil:
		return d.giveBackOld(a)
	case !sent.flying:
		op.Ask = sent.giveBack(op.N)
		return Result{}, false
	case len(s.back) < maxReturns:
		s.back = append(s.back, deferredReturn{op.Mark, op.N})
	default:
		d.kept.Add(uint64(op.N))
	}
	return s.returned(), true
}

// giveBackOld gives back permits whose charge is too old to be known. A bucket takes them
// without a mark, less what it has earned since they were taken: that came back already. A
// window counts in slots, which only the mark tells, and gets nothing.
func (d *Deferred) giveBackOld(a *deferredAsk) (Result, bool) {
	op := &a.op
	if op.Quota.Algorithm.Windowed() {
		d.kept.Add(uint64(op.N))
		return Result{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: op.Quota.Burst}}, true
	}
	passed := max(0, d.since(a.now)-op.Receipt.At)
	earned := float64(passed) * float64(op.Quota.Rate.N) / float64(op.Quota.Rate.Per)
	op.Ask = Ask{Kind: Return, N: op.N - int64(min(earned, float64(op.N)))}
	return Result{}, false
}

// returned returns the Result of a Return that is executed here.
func (s *deferredState) returned() Result {
	return Result{Decision: rules.Decision{
		Allowed: true, Reason: rules.ReasonWithin, Limit: s.told.Limit, Remaining: max(s.left, 0),
	}}
}

// hear records the answer to an ask, and that to the charge of what was taken before.
func (d *Deferred) hear(a *deferredAsk, res Result, err error, charge Result, chargeErr error) {
	s := a.state
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying -= a.flying
	if chargeErr != nil {
		d.lost.Add(uint64(a.flying))
	}
	if sent := s.find(a.batch); sent != nil {
		if sent.flying, sent.charge = false, charge.Return(); chargeErr != nil {
			*sent = deferredBatch{} // who knows what of it was charged
		}
	}
	switch {
	case err != nil || a.now.Before(s.at): // or a later one was faster
	case res.Limit < 1: // nothing is kept of the key
		s.at = time.Time{}
	default:
		s.quota, s.told, s.at = a.op.Quota, res.Decision, a.now
		s.left = res.Remaining - s.unsent - s.flying
	}
}

// returns appends the Returns that had to wait until their batch was charged.
func (d *Deferred) returns(s *deferredState, key deferredKey, asks []deferredAsk, now time.Time) []deferredAsk {
	rest := s.back[:0]
	for _, r := range s.back {
		sent := s.find(r.batch)
		switch {
		case sent == nil: // it was lost
			d.kept.Add(uint64(r.n))
		case sent.flying:
			rest = append(rest, r)
		default:
			op := Op{Quota: s.quota, Name: key.name, Key: key.key, Ask: sent.giveBack(r.n)}
			asks = append(asks, deferredAsk{op: op, place: len(asks), now: now})
		}
	}
	if s.back = rest; len(rest) == 0 {
		s.back = nil
	}
	return asks
}
