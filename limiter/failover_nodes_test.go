package limiter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// fakeCluster is a backend of several nodes, each of which can fail in its own way, and of keys
// that it cannot decide. A key's first letter names its node.
type fakeCluster struct {
	fake
	state    sync.Mutex
	nodes    map[string]nodeState
	poisoned map[string]bool
}

type nodeState int

const (
	nodeWell nodeState = iota
	nodeRefuses
	nodeHangs
	nodeReadOnly // answers reads only
)

var errReadOnly = errors.New("READONLY You can't write against a read only replica")

func newFakeCluster() *fakeCluster {
	return &fakeCluster{nodes: map[string]nodeState{}, poisoned: map[string]bool{}}
}

func (c *fakeCluster) set(node string, s nodeState) {
	c.state.Lock()
	defer c.state.Unlock()
	c.nodes[node] = s
}

func (c *fakeCluster) poison(key string, on bool) {
	c.state.Lock()
	defer c.state.Unlock()
	c.poisoned[key] = on
}

func (c *fakeCluster) Node(_ context.Context, op limiter.Op) string { return op.Key[:1] }

func (c *fakeCluster) Probe(ctx context.Context, op limiter.Op) error {
	op.Key = c.Node(ctx, op) + " probe"
	return c.refuses(ctx, op, true)
}

// refuses returns the error for op, or nil.
func (c *fakeCluster) refuses(ctx context.Context, op limiter.Op, writes bool) error {
	c.state.Lock()
	state, bad := c.nodes[op.Key[:1]], c.poisoned[op.Key]
	c.state.Unlock()
	switch {
	case state == nodeHangs:
		<-ctx.Done()
		return ctx.Err()
	case state == nodeRefuses:
		return errFakeRefused
	case state == nodeReadOnly && writes:
		return errReadOnly
	case bad:
		return &limiter.OpError{Err: errors.New("WRONGTYPE")}
	}
	return nil
}

func (c *fakeCluster) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	if err := c.refuses(ctx, op, op.Kind != limiter.Peek); err != nil {
		return limiter.Result{}, err
	}
	return c.fake.Do(ctx, op)
}

func (c *fakeCluster) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	errs, failed := make(limiter.OpErrors, len(ops)), false
	for i, op := range ops {
		results[i], errs[i] = c.Do(ctx, op)
		failed = failed || errs[i] != nil
	}
	if failed {
		return errs
	}
	return nil
}

// decidedBy returns who decided. The primary reports the whole limit, and the local backend of one
// of ten instances a tenth.
func decidedBy(res limiter.Result) string {
	if res.Limit == 100 {
		return "primary"
	}
	return "local"
}

func newClusterFailover(t testing.TB, c *fakeCluster, log *bytes.Buffer) *limiter.Failover {
	cfg := limiter.FailoverConfig{Instances: func() int { return 10 }}
	if log != nil {
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	return newFailover(t, c, cfg)
}

// An unavailable node moves no other node's keys off the primary. Neither does a key that cannot be
// decided: it moves no other keys, not even those that are asked with it.
func TestFailoverPerNode(t *testing.T) {
	for name, state := range map[string]nodeState{"refuses": nodeRefuses, "hangs": nodeHangs, "read-only": nodeReadOnly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, c := fakeQuota(100, 100), newFakeCluster()
				f := newClusterFailover(t, c, nil)
				defer runInBubble(t, f.Run)()
				c.set("b", state)
				keys := []string{"a1", "b1", "c1", "a2", "b2", "c2"}
				var ops []limiter.Op
				for _, key := range keys {
					ops = append(ops, fakeOp(limiter.Take, key, 1, &q))
				}
				for round := range 3 {
					results := make([]limiter.Result, len(ops))
					start := time.Now()
					if err := f.DoAll(context.Background(), ops, results); err != nil {
						t.Fatal(err)
					}
					first := 1 // a node that hangs is unavailable after two unanswered calls
					if state == nodeHangs {
						first++
					}
					if took := time.Since(start); round >= first && took > 0 {
						t.Errorf("round %d took %v", round, took)
					}
					for i, key := range keys {
						want := "primary"
						if key[0] == 'b' {
							want = "local"
						}
						if got := decidedBy(results[i]); got != want {
							t.Errorf("round %d: %s: %s decided, want %s", round, key, got, want)
						}
					}
				}
				if s := f.Stats(); s.Nodes < 1 || s.UnavailableSince.IsZero() {
					t.Errorf("%+v", s)
				}
				time.Sleep(10 * time.Second)
				if s := f.Stats(); s.Nodes != 1 {
					t.Errorf("%+v", s)
				}
				c.set("b", nodeWell)
				time.Sleep(3 * time.Second)
				results := make([]limiter.Result, len(ops))
				if err := f.DoAll(context.Background(), ops, results); err != nil {
					t.Fatal(err)
				}
				for i, key := range keys {
					if decidedBy(results[i]) != "primary" {
						t.Errorf("%s is back: %+v", key, results[i])
					}
				}
			})
		})
	}
}

func TestFailoverPoisonedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		q, c := fakeQuota(100, 100), newFakeCluster()
		f := newClusterFailover(t, c, &log)
		defer runInBubble(t, f.Run)()
		c.poison("a bad", true)
		for range 100 {
			ops := []limiter.Op{fakeOp(limiter.Take, "a1", 0, &q), fakeOp(limiter.Take, "a bad", 0, &q), fakeOp(limiter.Take, "a2", 0, &q)}
			results := make([]limiter.Result, len(ops))
			if err := f.DoAll(context.Background(), ops, results); err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"primary", "local", "primary"} {
				if got := decidedBy(results[i]); got != want {
					t.Fatalf("%s: %s decided, want %s", ops[i].Key, got, want)
				}
			}
			if res, _ := mustDo(t, f, ops[1]); decidedBy(res) != "local" {
				t.Fatalf("%+v", res)
			}
			if res, _ := mustDo(t, f.With(rules.OutageClosed), fakeOp(limiter.Take, "a bad", 1, &q)); res.Allowed || res.Reason != rules.ReasonUnavailable || res.RetryAfter <= 0 {
				t.Fatalf("closed: %+v", res)
			}
			time.Sleep(time.Second)
		}
		if s := f.Stats(); s.OpErrors != 300 || s.Failures != 0 || s.Nodes != 0 || s.Probes != 0 {
			t.Errorf("%+v", s)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), "limiter=x") || strings.Contains(log.String(), "a bad") {
			t.Errorf("%d lines in 100 s:\n%s", n, log.String())
		}
		c.poison("a bad", false)
		if res, _ := mustDo(t, f, fakeOp(limiter.Take, "a bad", 1, &q)); decidedBy(res) != "primary" {
			t.Errorf("%+v", res)
		}
	})
}

// Nodes fail and recover at random, and some keys cannot be decided. A model predicts who decides:
// the primary if the key is sound, its node is well, and the node's last outage ended at least the
// longest interval between two probes ago.
func TestFailoverNodesProperty(t *testing.T) {
	var byPrimary, byLocal int
	checkInBubble(t, func(rt *rapid.T) {
		const nodes = "abcde"
		var (
			log    bytes.Buffer
			q      = fakeQuota(100, 100)
			c      = newFakeCluster()
			f      = newClusterFailover(t, c, &log)
			well   = map[string]time.Time{} // by node, the start of its good health; none while it is unavailable
			bad    = map[string]bool{}
			back   = 2*time.Second*5/4 + limiter.DefaultTimeout
			start  = time.Now()
			stop   = runInBubble(t, f.Run)
			random = func(key string) string {
				return string(nodes[rapid.IntRange(0, len(nodes)-1).Draw(rt, "node")]) + key
			}
		)
		defer stop()
		for _, n := range nodes {
			well[string(n)] = start.Add(-time.Hour)
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch node := random(""); rapid.IntRange(0, 5).Draw(rt, "event") {
			case 0:
				c.set(node, rapid.SampledFrom([]nodeState{nodeRefuses, nodeReadOnly}).Draw(rt, "state"))
				delete(well, node)
			case 1:
				c.set(node, nodeWell)
				if _, ok := well[node]; !ok {
					well[node] = time.Now()
				}
			case 2:
				key := random(fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "key")))
				bad[key] = !bad[key]
				c.poison(key, bad[key])
			case 3:
				time.Sleep(time.Duration(rapid.IntRange(0, 4000).Draw(rt, "ms")) * time.Millisecond)
			default:
				var ops []limiter.Op
				for range rapid.IntRange(1, 8).Draw(rt, "ops") {
					ops = append(ops, fakeOp(limiter.Charge, random(fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "key"))), 0, &q))
				}
				results := make([]limiter.Result, len(ops))
				if err := f.DoAll(context.Background(), ops, results); err != nil {
					rt.Fatal(err)
				}
				for i, op := range ops {
					since, up := well[op.Key[:1]]
					got := decidedBy(results[i])
					switch {
					case (!up || bad[op.Key]) && got != "local":
						rt.Fatalf("%s was decided by the %s", op.Key, got)
					case up && !bad[op.Key] && time.Since(since) > back && got != "primary":
						rt.Fatalf("%s was decided by the %s, %v after its node was well: %+v", op.Key, got, time.Since(since), f.Stats())
					case got == "local":
						byLocal++
					default:
						byPrimary++
					}
				}
			}
		}
		synctest.Wait()
		lines, minutes := strings.Count(log.String(), "\n"), int(time.Since(start)/time.Minute)+1
		if most := (2*len(nodes) + 1) * minutes; lines > most {
			rt.Fatalf("%d lines in %d minutes, at most %d may be:\n%s", lines, minutes, most, log.String())
		}
	})
	if byPrimary == 0 || byLocal == 0 {
		t.Errorf("%d by the primary, %d locally", byPrimary, byLocal)
	}
}

// A caller whose deadline has passed gets an error that says so, whatever error the primary
// returned.
func TestFailoverDeadlineIsAContextError(t *testing.T) {
	q := fakeQuota(1, 10)
	timeout := errors.New("read tcp 127.0.0.1:6379: i/o timeout")
	b := &fakeBatcher{fake{before: func(ctx context.Context, _ ...limiter.Op) error { <-ctx.Done(); return timeout }}}
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, b, limiter.FailoverConfig{Timeout: time.Second})
		named := newNamed(t, b, "x", q)
		for name, ask := range map[string]func(context.Context) error{
			"Do": func(ctx context.Context) error {
				_, err := f.Do(ctx, fakeOp(limiter.Take, "k", 1, &q))
				return err
			},
			"DoAll": func(ctx context.Context) error {
				return f.DoAll(ctx, []limiter.Op{fakeOp(limiter.Take, "k", 1, &q)}, make([]limiter.Result, 1))
			},
			"a limiter": func(ctx context.Context) error { _, err := named.AllowN(ctx, "k", 1); return err },
			"several limits": func(ctx context.Context) error {
				_, err := limiter.AllowAll(ctx, limiter.Claim{Limiter: named, Key: "k", N: 1}, limiter.Claim{Limiter: named, Key: "l", N: 1})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, timeout) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
	})
}
