package limiter

import (
	"context"
	"time"
)

// refreshSize is about how many keys are charged in one call.
const refreshSize = 1000

// Run charges the backend, each Every, with what was allowed. It blocks until ctx ends,
// charges the rest, and returns nil.
func (d *Deferred) Run(ctx context.Context) error {
	ticker := time.NewTicker(d.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			d.refresh(context.WithoutCancel(ctx))
			return nil
		case <-ticker.C:
			d.refresh(ctx)
		}
	}
}

// refresh charges what has not been charged, and drops keys that are not asked for.
func (d *Deferred) refresh(ctx context.Context) {
	var asks []deferredAsk
	for i := range d.shards {
		asks = d.unsent(&d.shards[i], asks)
		if len(asks) >= refreshSize || i == len(d.shards)-1 && len(asks) > 0 {
			within, cancel := context.WithTimeout(ctx, graceTime)
			_ = d.send(within, asks, make([]Result, len(asks))) // what fails is counted
			cancel()
			asks = asks[:0]
		}
	}
}

// unsent appends a Charge for each key of the shard with uncharged takes, and the Returns that
// had to wait.
func (d *Deferred) unsent(sh *deferredShard, asks []deferredAsk) []deferredAsk {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := time.Now()
	for key, s := range sh.keys {
		s.mu.Lock()
		if len(s.back) > 0 {
			asks = d.returns(s, key, asks, now)
		}
		switch {
		case s.unsent > 0:
			n, batch := s.fly()
			op := Op{Quota: s.quota, Name: key.name, Key: key.key, Ask: Ask{Kind: Charge, N: n}}
			asks = append(asks, deferredAsk{op: op, state: s, place: len(asks), flying: n, batch: batch, now: now})
		case s.flying == 0 && len(s.back) == 0 && now.Sub(s.at) > stale*d.every:
			s.gone = true
			delete(sh.keys, key)
			d.held.Add(-1)
		}
		s.mu.Unlock()
	}
	return asks
}

// send sends the asks, in one call if the backend is a [Batcher], and records the answers.
func (d *Deferred) send(ctx context.Context, asks []deferredAsk, results []Result) error {
	ops := make([]Op, 0, 2*len(asks))
	for i := range asks {
		if a := &asks[i]; a.charged > 0 {
			charge := a.op
			charge.Ask = Ask{Kind: Charge, N: a.charged}
			ops = append(ops, charge)
		}
		ops = append(ops, asks[i].op)
	}
	got := make([]Result, len(ops))
	var all error
	switch {
	case len(ops) == 1:
		got[0], all = d.backend.Do(ctx, ops[0])
	case d.batcher != nil:
		all = d.batcher.DoAll(ctx, ops, got)
	default:
		all = eachInTurn(ops, got, func(i int) (Result, error) { return d.backend.Do(ctx, ops[i]) })
	}
	var (
		errs OpErrors
		at   int
	)
	for i := range asks {
		a := &asks[i]
		charge, chargeErr := got[at], ErrorOf(all, at)
		if a.charged > 0 {
			at++
		}
		res, err := got[at], ErrorOf(all, at)
		at++
		if a.state != nil {
			d.hear(a, res, err, charge, chargeErr)
		}
		res.Receipt.path = res.Receipt.path.via(pathWithin)
		results[a.place] = res
		errs = setError(errs, len(results), a.place, err)
	}
	return errs.asError()
}
