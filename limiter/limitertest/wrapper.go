package limitertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// WrapperConfig describes a backend around another one to the suite.
type WrapperConfig struct {
	// New returns a running backend around inner. Everything that it starts must end with
	// t.Context. It is called in a bubble of testing/synctest.
	New func(t *testing.T, inner limiter.Backend) limiter.Backend
	// Decides reports whether the backend decides by itself while inner fails. Otherwise it
	// returns inner's error.
	Decides bool
}

// TestWrapper checks the promises of every backend around another one. An error concerns its op
// alone, a lost node does not affect another node's keys, and returned permits go to the backend
// from which they were taken.
func TestWrapper(t *testing.T, c WrapperConfig) { testWrapper(t, c, func(string) bool { return true }) }

func testWrapper(t *testing.T, c WrapperConfig, chosen func(name string) bool) {
	for _, x := range wrapperCases {
		if !chosen(x.name) {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNodes(t)
				x.run(&wrapper{T: t, config: &c, nodes: n, Backend: c.New(t, n)})
			})
		})
	}
}

type wrapperCase struct {
	name string
	run  func(*wrapper)
}

// wrapper is the world of one case: the tested backend, and the one inside it.
type wrapper struct {
	*testing.T
	limiter.Backend
	config *WrapperConfig
	nodes  *nodes
}

// settleTime is the time in which a wrapper notices that a node has recovered, and passes
// everything to its inner backend.
const settleTime = 10 * time.Second

// settle waits until everything is passed to the inner backend.
func (w *wrapper) settle() {
	time.Sleep(settleTime)
	synctest.Wait()
}

// askOne executes one op, and fails on an error unless one is expected.
func (w *wrapper) askOne(op limiter.Op) (limiter.Result, bool) {
	w.Helper()
	r, err := w.Do(context.Background(), op)
	w.check(op, err)
	return r, err == nil
}

// askAll executes all ops at once, if the wrapper can.
func (w *wrapper) askAll(ops []limiter.Op) []limiter.Result {
	w.Helper()
	results := make([]limiter.Result, len(ops))
	b, ok := w.Backend.(limiter.Batcher)
	if !ok {
		for i, op := range ops {
			results[i], _ = w.askOne(op)
		}
		return results
	}
	err := b.DoAll(context.Background(), ops, results)
	for i, op := range ops {
		w.check(op, limiter.ErrorOf(err, i))
	}
	return results
}

// check fails unless err is the expected error.
func (w *wrapper) check(op limiter.Op, err error) {
	w.Helper()
	due := w.nodes.errorFor(op)
	var alone *limiter.OpError
	switch {
	case err == nil && (due == nil || w.config.Decides || op.Kind == limiter.Return):
	case err != nil && due != nil && !w.config.Decides && errors.Is(err, due) && errors.As(err, &alone) == errors.As(due, &alone):
	default:
		w.Fatalf("%s: %s: the error is %v, want %v", op.Key, describeRequest(op.Request), err, due)
	}
}

// nodes is a backend in memory whose keys are on nodes, by their first letter. A node may be
// lost. A key may be poisoned: each of its ops then fails without an effect on others.
type nodes struct {
	t        *testing.T
	memory   *limiter.Memory
	mu       sync.Mutex
	lost     map[string]bool
	poisoned map[string]bool
}

var (
	_ limiter.Batcher   = (*nodes)(nil)
	_ limiter.Clustered = (*nodes)(nil)

	errLost     = errors.New("connection refused")
	errPoisoned = &limiter.OpError{Err: errors.New("the key is of another type")}
)

func newNodes(t *testing.T) *nodes {
	m, err := limiter.NewMemory(limiter.MemoryConfig{Clock: func() time.Duration { return time.Duration(time.Now().UnixNano()) }})
	if err != nil {
		t.Fatal(err)
	}
	return &nodes{t: t, memory: m, lost: map[string]bool{}, poisoned: map[string]bool{}}
}

func (n *nodes) setLost(node string, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost[node] = lost
}

func (n *nodes) setPoisoned(key string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.poisoned[key] = on
}

// errorFor returns the error of an op, or nil.
func (n *nodes) errorFor(op limiter.Op) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.lost[op.Key[:1]]:
		return errLost
	case n.poisoned[op.Key]:
		return errPoisoned
	}
	return nil
}

func (n *nodes) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	if err := n.errorFor(op); err != nil {
		return limiter.Result{}, err
	}
	return n.memory.Do(ctx, op)
}

func (n *nodes) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	errs := make(limiter.OpErrors, len(ops))
	var there []limiter.Op
	var places []int
	for i, op := range ops {
		if errs[i] = n.errorFor(op); errs[i] == nil {
			there, places = append(there, op), append(places, i)
		}
	}
	got := make([]limiter.Result, len(there))
	err := n.memory.DoAll(ctx, there, got)
	for k, i := range places {
		results[i], errs[i] = got[k], limiter.ErrorOf(err, k)
	}
	if len(errs.Unwrap()) > 0 {
		return errs
	}
	return nil
}

func (n *nodes) Node(_ context.Context, op limiter.Op) string { return op.Key[:1] }

func (n *nodes) Probe(_ context.Context, op limiter.Op) error {
	op.Key = op.Key[:1] + " probe"
	return n.errorFor(op)
}

// takenPermits returns the number of permits of a key that the inner backend lacks.
func (n *nodes) takenPermits(op limiter.Op) int64 {
	n.t.Helper()
	op.Request = limiter.Request{Kind: limiter.Peek}
	r, err := n.memory.Do(context.Background(), op)
	if err != nil {
		n.t.Fatal(err)
	}
	return r.Limit - r.Remaining
}

// wrapperQuotas has a quota of each algorithm. [wrapperOp] sets their rate, so low that they earn
// almost nothing while a case runs.
var wrapperQuotas = []rules.Quota{
	{Algorithm: rules.TokenBucket}, {Algorithm: rules.GCRA}, {Algorithm: rules.LeakyBucket},
	{Algorithm: rules.FixedWindow}, {Algorithm: rules.SlidingLog}, {Algorithm: rules.SlidingBlocks},
}

// wrapperOp returns a take of n permits of a key.
func wrapperOp(key string, n int64, q rules.Quota) limiter.Op {
	q.Rate = rules.Rate{N: 1000, Per: 10_000 * time.Hour}
	q = q.WithDefaults()
	return limiter.Op{Quota: &q, Name: "limit", Key: key, Request: limiter.Request{N: n}}
}
