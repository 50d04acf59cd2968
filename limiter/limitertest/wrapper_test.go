package limitertest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// through is a wrapper that does nothing except for its flaw.
type through struct {
	limiter.Batcher
	result func(r limiter.Result) limiter.Result
	op     func(op limiter.Op) (limiter.Op, bool) // false drops the op
	opens  func(err error) bool                   // true fails all calls for 5 s
	all    bool                                   // one op's error fails all
	until  time.Time
}

func (w *through) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	var results [1]limiter.Result
	err := w.DoAll(ctx, []limiter.Op{op}, results[:])
	return results[0], limiter.ErrorOf(err, 0)
}

func (w *through) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	if time.Now().Before(w.until) {
		return errLost
	}
	ops = slices.Clone(ops)
	for i := range ops {
		if w.op != nil {
			var ok bool
			if ops[i], ok = w.op(ops[i]); !ok {
				ops[i].Request = limiter.Request{Kind: limiter.Peek}
			}
		}
	}
	err := w.Batcher.DoAll(ctx, ops, results)
	for i := range results {
		if w.result != nil {
			results[i] = w.result(results[i])
		}
	}
	if err != nil && w.opens != nil && w.opens(err) {
		w.until = time.Now().Add(5 * time.Second)
	}
	if err != nil && w.all {
		clear(results)
		var each limiter.OpErrors
		if errors.As(err, &each) {
			return each.Unwrap()[0]
		}
	}
	return err
}

// wrapperFlaws are the possible mistakes of a wrapper, with the cases that find them.
var wrapperFlaws = []struct {
	name  string
	found []string
	wrap  func(t *testing.T, inner limiter.Backend) limiter.Backend
}{
	{"an error is that of the whole batch", []string{"an error concerns its op alone", "a node that is lost takes no other's keys"}, asThrough(func(w *through) { w.all = true })},
	{"a poisoned key stops it", []string{"an error concerns its op alone"}, asThrough(func(w *through) {
		w.opens = func(err error) bool { return errors.Is(err, errPoisoned) }
	})},
	{"a lost node stops it", []string{"a node that is lost takes no other's keys"}, asThrough(func(w *through) {
		w.opens = func(err error) bool { return errors.Is(err, errLost) }
	})},
	{"marks are lost", []string{"what is given back comes back"}, asThrough(func(w *through) {
		w.result = func(r limiter.Result) limiter.Result { r.Mark = 0; return r }
	})},
	{"what is given back is dropped", []string{"what is given back comes back", "what another limit refuses costs nothing"}, asThrough(func(w *through) {
		w.op = func(op limiter.Op) (limiter.Op, bool) { return op, op.Kind != limiter.Return }
	})},
	{"one too many is given back", []string{"what is given back comes back"}, asThrough(func(w *through) {
		w.op = func(op limiter.Op) (limiter.Op, bool) {
			if op.Kind == limiter.Return {
				op.N++
			}
			return op, true
		}
	})},
	{"who took it is forgotten", []string{"what was taken elsewhere is not given back to the backend"}, func(t *testing.T, inner limiter.Backend) limiter.Backend {
		return &through{Batcher: newTestFailover(t, inner), result: func(r limiter.Result) limiter.Result { r.Receipt = limiter.Receipt{At: r.Receipt.At}; return r }}
	}},
	{"a breaker for all nodes", []string{"a node that is lost takes no other's keys"}, func(t *testing.T, inner limiter.Backend) limiter.Backend {
		f := newTestFailover(t, struct{ limiter.Batcher }{inner.(limiter.Batcher)}) // hides the inner backend's nodes
		return f.With(rules.OutageClosed)                                           // or it would charge the permits that it granted
	}},
}

func asThrough(flaw func(*through)) func(*testing.T, limiter.Backend) limiter.Backend {
	return func(_ *testing.T, inner limiter.Backend) limiter.Backend {
		w := &through{Batcher: inner.(limiter.Batcher)}
		flaw(w)
		return w
	}
}

func newTestFailover(t *testing.T, inner limiter.Backend) *limiter.Failover {
	f, err := limiter.NewFailover(inner, limiter.FailoverConfig{Outage: rules.OutageLocal})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	return f
}

func TestWrappersThatAreSound(t *testing.T) {
	TestWrapper(t, WrapperConfig{New: func(t *testing.T, inner limiter.Backend) limiter.Backend { return newTestFailover(t, inner) }, Decides: true})
	TestWrapper(t, WrapperConfig{New: asThrough(func(*through) {})})
}

// Each flaw is found by the case for it, in its own process.
func TestWrapperMutants(t *testing.T) {
	const flawed, by = "LIMITERTEST_WRAPPER", "LIMITERTEST_WRAPPER_CASE"
	if name := os.Getenv(flawed); name != "" {
		for _, f := range wrapperFlaws {
			if f.name == name {
				decides := strings.Contains(name, "breaker") || strings.Contains(name, "who took")
				testWrapper(t, WrapperConfig{New: f.wrap, Decides: decides}, func(name string) bool { return name == os.Getenv(by) })
			}
		}
		return
	}
	for _, f := range wrapperFlaws {
		for _, name := range f.found {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWrapperMutants$")
				cmd.Env = append(os.Environ(), flawed+"="+f.name, by+"="+name)
				out, err := cmd.CombinedOutput()
				if err == nil {
					t.Fatal("it passes")
				}
				if !strings.Contains(string(out), "--- FAIL: TestWrapperMutants/") || strings.Contains(string(out), "panic:") {
					t.Fatalf("%v:\n%s", err, out)
				}
			})
		}
	}
}
