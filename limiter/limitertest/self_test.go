package limitertest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/rules"
)

// This file shows how your own backend runs the suite. The backend here is a few lines: a mutex and
// a map of full buckets, for the token bucket alone, and for the requests that it can answer.

// tiny is a third party's limiter.Backend.
type tiny struct {
	now  func() time.Duration
	mu   sync.Mutex
	keys map[tinyKey]tinyBucket
}

type tinyKey struct{ name, key string }

type tinyBucket struct {
	full  time.Duration // time at which the bucket is full
	token time.Duration // time to earn one token
	most  time.Duration // time to earn all tokens that can be missing, by the largest quota
}

func newTiny(_ *testing.T, now func() time.Duration) limiter.Backend {
	return &tiny{now: now, keys: map[tinyKey]tinyBucket{}}
}

// supported reports whether tiny can do kind under q. The suite asks for nothing else.
func supported(q *rules.Quota, kind limiter.OpKind) bool {
	return *q == rules.Quota{Algorithm: rules.TokenBucket, Rate: q.Rate, Burst: q.Burst} && q.Burst != rules.Unlimited &&
		(kind == limiter.Take || kind == limiter.Peek || kind == limiter.Forget)
}

func (b *tiny) Do(_ context.Context, op limiter.Op) (limiter.Result, error) {
	switch {
	case op.Name == "" || op.Key == "":
		return limiter.Result{}, limiter.ErrNoKey
	case !supported(op.Quota, op.Kind):
		return limiter.Result{}, limiter.ErrUnsupported
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now, key := b.now(), tinyKey{op.Name, op.Key}
	if op.Kind == limiter.Forget {
		delete(b.keys, key)
		op.Request = limiter.Request{Kind: limiter.Peek}
	}
	token := (op.Quota.Rate.Per-1)/time.Duration(op.Quota.Rate.N) + 1
	fill := token * time.Duration(op.Quota.Burst)
	x := b.keys[key]
	switch {
	case x.full <= now:
		x.full = now
	case x.token != token: // another quota: the same tokens are missing
		x.full = now + ((x.full-now-1)/x.token+1)*token
		x.most = (x.most-1)/x.token*token + token
	}
	if x.most = max(x.most, fill); x.full-now > x.most+time.Minute { // another clock
		x.full = now + fill
	}
	x.token = token
	free, keep := fill-(x.full-now), max(0, op.Keep)
	r := limiter.Result{Decision: rules.Decision{Reason: rules.ReasonLimited, Limit: op.Quota.Burst}}
	switch {
	case op.N < 0, op.N > 0 && keep > op.Quota.Burst-op.N: // never
	case op.N > 0 && token*time.Duration(op.N+keep) > free:
		r.RetryAfter = token*time.Duration(op.N+keep) - free
	default:
		r.Allowed, r.Reason = true, rules.ReasonWithin
		if op.Kind == limiter.Take {
			r.Taken = op.N
			x.full += token * time.Duration(op.N)
		}
	}
	b.keys[key] = x
	r.Remaining = max(0, int64((fill-(x.full-now))/token))
	r.ResetAfter = x.full - now
	return r, nil
}

// TestTiny runs the suite in its own process. Many cases are skipped there, and they report why.
// That is right here, and worth a look everywhere else.
func TestTiny(t *testing.T) {
	const inside = "LIMITERTEST_TINY"
	if os.Getenv(inside) != "" {
		limitertest.TestBackend(t, limitertest.Config{New: newTiny, Supports: supported})
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTiny$", "-test.v", "-rapid.nofailfile")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	const passed, skipped = "--- PASS: TestTiny/", "the backend does not support this"
	if !strings.Contains(string(out), passed) || !strings.Contains(string(out), skipped) {
		t.Fatalf("want cases that passed and some that were skipped:\n%s", out)
	}
}
