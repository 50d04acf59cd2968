package limitertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// The models know one quota of a key, so mistakes with several quotas are flaws in front of a
// correct backend. Each flaw changes the ops on their way to it.

// flawed is a Memory behind a flaw.
type flawed struct {
	limiter.Backend
	flaw  func(b *flawed, op *limiter.Op)
	mu    sync.Mutex
	quota map[[2]string]rules.Quota // the last quota by name and key
}

func newFlawed(t *testing.T, now func() time.Duration, flaw func(*flawed, *limiter.Op)) limiter.Backend {
	m, err := limiter.NewMemory(limiter.MemoryConfig{Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	return &flawed{Backend: m, flaw: flaw, quota: map[[2]string]rules.Quota{}}
}

func (b *flawed) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := [2]string{op.Name, op.Key}
	b.flaw(b, &op)
	if op.Quota != nil && op.Kind != limiter.Return {
		b.quota[id] = *op.Quota
	}
	return b.Backend.Do(ctx, op)
}

// was returns the quota that last asked for the key.
func (b *flawed) was(op *limiter.Op) (rules.Quota, bool) {
	q, ok := b.quota[[2]string{op.Name, op.Key}]
	return q, ok
}

// first makes another request for the key before the op.
func (b *flawed) first(op *limiter.Op, ask limiter.Request) limiter.Result {
	before := *op
	before.Request = ask
	r, _ := b.Backend.Do(context.Background(), before)
	return r
}

const mixes = "quotas in any mix admit what the largest of them allows"

var quotaFlaws = []flaw{
	{name: "what is missing is cut to the burst that asks", found: []string{
		"two quotas of one family in turns admit what the larger one allows", mixes,
	}, before: func(b *flawed, op *limiter.Op) {
		was, ok := b.was(op)
		if !ok || op.Kind == limiter.Return || op.Quota.Algorithm.Windowed() || was == *op.Quota {
			return
		}
		full := time.Duration(op.Quota.Burst) * (op.Quota.Rate.Per / time.Duration(op.Quota.Rate.N))
		if b.first(op, peek(0)).ResetAfter > full {
			b.first(op, limiter.Request{Kind: limiter.Forget})
			b.first(op, take(op.Quota.Burst))
		}
	}},
	{name: "a quota is its pointer", found: []string{mixes, returnsInAnyOrder},
		before: func(_ *flawed, op *limiter.Op) { op.Key += fmt.Sprintf("%p", op.Quota) }},
	{name: "another algorithm starts anew", found: []string{
		"A7: another algorithm starts anew, and the first one finds what it left", mixes,
	}, before: func(b *flawed, op *limiter.Op) {
		if was, ok := b.was(op); ok && familyOf(&was) != familyOf(op.Quota) {
			b.first(op, limiter.Request{Kind: limiter.Forget})
		}
	}},
	{name: "another length of the window starts anew", found: []string{mixes}, before: func(b *flawed, op *limiter.Op) {
		if was, ok := b.was(op); ok && was.Rate.Per != op.Quota.Rate.Per && op.Quota.Algorithm.Windowed() {
			b.first(op, limiter.Request{Kind: limiter.Forget})
		}
	}},
	{name: "a return goes to the state that holds", found: []string{
		"what is returned goes to where it was taken, whatever the algorithm is by then",
	}, before: func(b *flawed, op *limiter.Op) {
		if was, ok := b.was(op); ok && op.Kind == limiter.Return {
			op.Quota = &was
		}
	}},
	{name: "a return resets another algorithm's state", found: []string{
		"what is returned goes to where it was taken, whatever the algorithm is by then",
	}, before: func(b *flawed, op *limiter.Op) {
		if was, ok := b.was(op); ok && op.Kind == limiter.Return && familyOf(&was) != familyOf(op.Quota) {
			b.first(op, limiter.Request{Kind: limiter.Forget})
		}
	}},
	{name: "what was earned is given back again", found: []string{
		"random schedules come to what the model says", mixes, returnsInAnyOrder,
	}, before: func(_ *flawed, op *limiter.Op) {
		if op.Kind == limiter.Return && !op.Quota.Algorithm.Windowed() {
			op.Mark, op.Receipt = 0, limiter.Receipt{}
		}
	}},
	{name: "a return counts twice", found: []string{
		"concurrent reservations, cancels and reloads admit what the largest quota allows", mixes,
	}, before: func(b *flawed, op *limiter.Op) {
		if op.Kind == limiter.Return {
			b.first(op, op.Request)
		}
	}},
	{name: "nothing is given back under another quota", found: []string{"what is returned is there under the quota that holds by then"},
		before: func(b *flawed, op *limiter.Op) {
			if was, ok := b.was(op); ok && op.Kind == limiter.Return && was != *op.Quota {
				op.N = 0
			}
		}},
	{name: "no return is the last of its take", found: []string{returnsInAnyOrder},
		before: func(_ *flawed, op *limiter.Op) {
			if op.Kind == limiter.Return {
				op.Keep = 1
				op.Receipt = limiter.Receipt{}
			}
		}},
	{name: "each return is the last of its take", found: []string{returnsInAnyOrder},
		before: func(_ *flawed, op *limiter.Op) {
			if op.Kind == limiter.Return {
				op.Keep = 0
			}
		}},
	{name: "only what was taken last is given back", found: []string{returnsInAnyOrder},
		before: func(_ *flawed, op *limiter.Op) {
			if op.Kind == limiter.Return {
				op.Receipt = limiter.Receipt{}
				op.Mark = max(0, op.Mark-int64(time.Minute))
			}
		}},
	{name: "a cold bucket is charged nothing", found: []string{"warm-up follows Guava's arithmetic"}, before: func(_ *flawed, op *limiter.Op) {
		if op.Kind == limiter.Charge && op.Quota.WarmUp > 0 {
			op.Request = peek(0)
		}
	}},
	{name: "a charge warms nothing", found: []string{"warm-up follows Guava's arithmetic"}, before: func(b *flawed, op *limiter.Op) {
		if op.Kind == limiter.Charge && op.Quota.WarmUp > 0 {
			b.first(op, limiter.Request{Kind: limiter.Forget}) // cold again, and then charged
		}
	}},
}

func init() { flaws = append(flaws, quotaFlaws...) }
