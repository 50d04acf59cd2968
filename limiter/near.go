package limiter

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hotparam/hotparam"
)

// Near is a backend that warns when a key comes near its limit.
type Near struct {
	backend Backend
	batcher Batcher // the backend, or nil
	share   float64
	warn    func(name string, d hotparam.Decision)
}

var (
	_ Batcher   = (*Near)(nil)
	_ Clustered = (*Near)(nil)
)

// NewNear makes a backend that asks backend, and calls warn with the limit's name for
// each ask that takes what remains of a key below a share of its limit, 0 to 1: once
// for each time that a key comes to it, and again when it was above meanwhile. Warn is
// called from the request's own goroutine, and has to be quick; d is the decision. Who
// is in debt already is warned of with each Charge.
func NewNear(backend Backend, share float64, warn func(name string, d hotparam.Decision)) (*Near, error) {
	switch {
	case backend == nil || warn == nil:
		return nil, errors.New("limiter: NewNear: wants a backend, and whom to warn")
	case !(share > 0 && share <= 1):
		return nil, fmt.Errorf("limiter: NewNear: share %v: must be above 0, at most 1", share)
	}
	batcher, _ := backend.(Batcher)
	return &Near{backend: backend, batcher: batcher, share: share, warn: warn}, nil
}

// Do implements [Backend].
func (n *Near) Do(ctx context.Context, op Op) (Result, error) {
	res, err := n.backend.Do(ctx, op)
	if err == nil {
		n.look(op, res)
	}
	return res, err
}

// DoAll implements [Batcher].
func (n *Near) DoAll(ctx context.Context, ops []Op, results []Result) error {
	if n.batcher == nil {
		return eachInTurn(ctx, n, ops, results)
	}
	err := n.batcher.DoAll(ctx, ops, results)
	for i := range ops {
		if ErrorOf(err, i) == nil {
			n.look(ops[i], results[i])
		}
	}
	return err
}

// Node implements [Clustered].
func (n *Near) Node(ctx context.Context, op Op) string { return nodeOf(ctx, n.backend, op) }

// Probe implements [Clustered].
func (n *Near) Probe(ctx context.Context, op Op) error { return probe(ctx, n.backend, op) }

// look warns if this very ask has crossed the mark: what was there before is what
// remains and what it took, so that nothing needs to be remembered of a key.
func (n *Near) look(op Op, res Result) {
	if res.Taken < 1 || res.Limit < 1 || op.Kind == Return || op.Kind == Reserve && res.Delay > 0 {
		return
	}
	mark := int64(math.Ceil(float64(res.Limit) * n.share))
	if res.Remaining < mark && res.Taken >= mark-res.Remaining {
		n.warn(op.Name, res.Decision)
	}
}
