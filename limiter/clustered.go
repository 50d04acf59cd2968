package limiter

import (
	"context"
	"crypto/rand"
	"errors"
)

// Clustered is a backend whose keys lie on nodes that fail one by one, or one that has its own
// way to find out whether it takes writes. A [Failover] around it keeps a circuit breaker for
// each node. A backend that is not Clustered counts as one node.
type Clustered interface {
	Backend
	// Node returns the name of the node that has op's key now. It is empty if there is only one
	// node, or if the node is not known. Node does not wait for other nodes.
	Node(ctx context.Context, op Op) string
	// Probe writes to the node that has op's key, without a trace in the key itself. It returns
	// nil if the write succeeded.
	Probe(ctx context.Context, op Op) error
}

// around is embedded in a wrapper of a backend. It is [Clustered] as far as the backend is.
type around struct {
	backend Backend
	batcher Batcher // the backend, or nil
}

func aroundOf(b Backend) around {
	batcher, _ := b.(Batcher)
	return around{b, batcher}
}

// Unwrap returns the wrapped backend.
func (a *around) Unwrap() Backend { return a.backend }

// Node implements [Clustered].
func (a *around) Node(ctx context.Context, op Op) string { return nodeOf(ctx, a.backend, op) }

// Probe implements [Clustered].
func (a *around) Probe(ctx context.Context, op Op) error { return probe(ctx, a.backend, op) }

// nodeOf returns the node of b that has op's key.
func nodeOf(ctx context.Context, b Backend, op Op) string {
	if c, ok := b.(Clustered); ok {
		return c.Node(ctx, op)
	}
	return ""
}

// probeName is the limiter's name that a probe writes under if the backend has no probe of its
// own.
const probeName = "hotparam probe"

// probe writes to the node of b that has op's key. A backend that is not [Clustered] is asked,
// by op's quota, for a permit of a random key that no one uses. Taking it is a write. An error
// of that ask alone is an answer, too.
func probe(ctx context.Context, b Backend, op Op) error {
	if c, ok := b.(Clustered); ok {
		return c.Probe(ctx, op)
	}
	op.Name, op.Key, op.Request = probeName, rand.Text(), Request{Kind: Take, N: 1}
	_, err := b.Do(ctx, op)
	if concernsOp(err) {
		return nil
	}
	return err
}

// concernsOp reports whether an error of a backend concerns one op alone.
func concernsOp(err error) bool {
	var alone *OpError
	return errors.As(err, &alone) || refusedByAll(err)
}

// refusedByAll reports whether err means that every backend refuses the op.
func refusedByAll(err error) bool {
	return errors.Is(err, ErrNoKey) || errors.Is(err, ErrUnsupported)
}
