package limiter

import (
	"context"

	"github.com/hotparam/hotparam/rules"
)

// opSubset is a subset of the ops of a DoAll, in their order.
type opSubset struct {
	places  []int // indexes in the DoAll
	views   []*Failover
	ops     []Op
	results []Result
}

func (p *opSubset) add(place int, view *Failover, op Op) {
	p.places, p.views = append(p.places, place), append(p.views, view)
	p.ops, p.results = append(p.ops, op), append(p.results, Result{})
}

// settle copies the part's results and errors to those of the DoAll.
func (p *opSubset) settle(results []Result, errs OpErrors, err error) OpErrors {
	for k, i := range p.places {
		results[i] = p.results[k]
		errs = setError(errs, len(results), i, ErrorOf(err, k))
	}
	return errs
}

// dropTogether removes all ops with Together, since one of these was denied.
func (p *opSubset) dropTogether(results []Result) {
	kept := opSubset{}
	for k, op := range p.ops {
		if op.together() {
			results[p.places[k]] = notAsked
			continue
		}
		kept.add(p.places[k], p.views[k], op)
	}
	*p = kept
}

// decideTogether decides ops with Together, without the primary. The local backend gets its ops
// in one call, and last, since no other op can then be denied after it. Its grants are recorded
// in the ledger.
func (f *Failover) decideTogether(ctx context.Context, p *opSubset) error {
	local, ok := f.local.(Batcher)
	if !ok {
		return eachInTurn(p.ops, p.results, func(i int) (Result, error) { return p.views[i].decideOwing(ctx, p.ops[i], pathWithin) })
	}
	var (
		errs     OpErrors
		localOps opSubset
		denied   bool
	)
	for i, op := range p.ops {
		view := p.views[i]
		if view.outage == rules.OutageLocal {
			localOps.add(i, view, f.shares.withShare(op, f.instances()))
			continue
		}
		var err error
		p.results[i], err = view.decide(ctx, op, pathWithin)
		errs = setError(errs, len(p.ops), i, err)
		denied = denied || err == nil && !p.results[i].Allowed
	}
	if denied {
		localOps.dropTogether(p.results)
	}
	if len(localOps.ops) == 0 {
		return errs.asError()
	}
	f.asLocal.Add(uint64(len(localOps.ops)))
	shards := f.owed.lockAll(localOps.ops)
	defer func() {
		for _, s := range shards {
			s.mu.Unlock()
		}
	}()
	err := local.DoAll(ctx, localOps.ops, localOps.results)
	for k, i := range localOps.places {
		var failed error
		op := &p.ops[i]
		p.results[i], failed = f.localResult(ctx, *op, localOps.results[k], ErrorOf(err, k))
		if failed == nil && p.results[i].Taken > 0 && op.Quota.Burst != rules.Unlimited {
			f.owed.add(f.owed.shard(op.Name, op.Key), op, &p.results[i], f.instances())
		}
		errs = setError(errs, len(p.ops), i, failed)
	}
	return errs.asError()
}
