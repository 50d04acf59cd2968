package limitertest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// models is a backend of models, one for each key. The suite checks the models by the named cases,
// which state expected results in figures, and by the bounds. The models in turn check that the
// suite finds mistakes: a mutant is a model with a flaw.
type models struct {
	flaw flaw
	now  func() time.Duration
	mu   sync.Mutex
	keys map[[2]string]*keyModel
	time time.Duration // time passed on the clock, which may go back
}

func newModels(f flaw) func(*testing.T, func() time.Duration) limiter.Backend {
	return func(t *testing.T, now func() time.Duration) limiter.Backend {
		if f.before != nil {
			return newFlawed(t, now, f.before)
		}
		return &models{flaw: f, now: now, keys: map[[2]string]*keyModel{}}
	}
}

func (b *models) Do(_ context.Context, op limiter.Op) (limiter.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if op.Name == "" || op.Key == "" {
		return limiter.Result{}, limiter.ErrNoKey
	}
	now := b.now()
	if b.flaw.clock != nil {
		b.time = b.flaw.clock(b.time, now)
	} else {
		b.time = max(b.time, now)
	}
	id := [2]string{op.Name, op.Key}
	if b.flaw.op != nil {
		b.flaw.op(&op, &id)
	}
	m := b.keys[id]
	if m == nil {
		m = newModel(op.Quota, 1)
		b.keys[id] = m
	}
	r := m.do(b.time, op.Request)
	if b.flaw.result != nil {
		b.flaw.result(m, b.time, op.Request, &r)
	}
	for _, d := range []*time.Duration{&r.RetryAfter, &r.ResetAfter, &r.Delay} {
		if *d > 0 {
			*d += b.time - now
		}
	}
	return r, nil
}

func (b *models) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	for i := range ops {
		if b.flaw.backwards {
			i = len(ops) - 1 - i
		}
		r, err := b.Do(ctx, ops[i])
		if err != nil {
			return err
		}
		results[i] = r
	}
	return nil
}

// beyond lists the cases that models do not support, since a model has one quota and one clock.
var beyond = []string{
	"failure mode: a clock that is set back by hours grants nothing, and locks nobody out",
	"failure mode: a clock that jumps years ahead and back grants one burst, and locks nobody out",
	"a penalty does not outlive a clock that is set back",
	"D2 bug: a funnel takes another capacity and another rate",
}

func TestModels(t *testing.T) {
	t.Parallel()
	for _, x := range slices.Concat(changeCases, quotaCases) {
		beyond = append(beyond, x.name)
	}
	beyond = append(beyond, returnsInAnyOrder, mixes, "what is asked together is taken together or not at all")
	testModels(t, flaw{}, 30, func(name string) bool { return !slices.Contains(beyond, name) })
}

// testModels runs the chosen cases of the suite.
func testModels(t *testing.T, f flaw, schedules int, chosen func(name string) bool) {
	c := Config{New: newModels(f), Schedules: schedules}
	for _, x := range cases {
		if chosen(x.name) {
			t.Run(x.name, func(t *testing.T) { x.run(newWorld(t, &c)) })
		}
	}
	for _, p := range properties {
		if chosen(p.name) {
			t.Run(p.name, func(t *testing.T) { p.run(t, &c) })
		}
	}
}

// flaw is a mistake of a backend.
type flaw struct {
	name      string
	found     []string // names of the cases that find it
	clock     func(last, now time.Duration) time.Duration
	op        func(op *limiter.Op, id *[2]string)
	result    func(m *keyModel, now time.Duration, ask limiter.Request, r *limiter.Result)
	backwards bool                            // executes batches in reverse
	before    func(b *flawed, op *limiter.Op) // called for a Memory, not for models
}

var flaws = []flaw{
	{name: "a clock that goes back refills twice", found: []string{"failure mode: a clock that goes back refills nothing twice", "a clock that jumps back and forth grants nothing twice"}, clock: twice()},
	{name: "time is in whole seconds", found: []string{"B8 bug: rate 10/s with a burst of 10 admits 1,010 in 100 s, not 500", "random schedules come to what the model says"}, clock: func(_, now time.Duration) time.Duration { return now.Truncate(sec) }},
	{name: "the clock is the client's", found: []string{"A1: a bucket starts full, and what it earns is never more"}, clock: func(time.Duration, time.Duration) time.Duration { return epoch + time.Since(started) }},
	{name: "a denial consumes", found: []string{"A2: a denial consumes nothing", "random schedules come to what the model says"}, result: func(m *keyModel, now time.Duration, ask limiter.Request, r *limiter.Result) {
		if ask.Kind == limiter.Take && r.Reason == rules.ReasonLimited && r.RetryAfter > 0 {
			m.ideal.charge(now, ask.N)
		}
	}},
	{name: "what is given back overfills", found: []string{"failure mode: a reservation that is cancelled after its time gives back nothing that has come back", "random schedules come to what the model says"}, result: overfill()},
	{name: "a window admits one more", found: []string{"B6 bug: a window admits exactly its limit", "any window holds what it may, and a retry passes on time"}, op: func(op *limiter.Op, _ *[2]string) {
		if q := *op.Quota; q.Algorithm.Windowed() && q.Burst > 0 {
			q.Rate.N++
			q.Burst++
			op.Quota = &q
		}
	}, result: func(m *keyModel, _ time.Duration, _ limiter.Request, r *limiter.Result) {
		if m.q.Algorithm.Windowed() && r.Limit > 0 {
			r.Limit--
			r.Remaining = max(0, r.Remaining-1)
		}
	}},
	{name: "a cost counts as one", found: []string{"B8 bug: a cost of several tokens takes them all"}, op: func(op *limiter.Op, _ *[2]string) {
		if op.Kind == limiter.Take {
			op.N = min(op.N, 1)
		}
	}, result: func(_ *keyModel, _ time.Duration, ask limiter.Request, r *limiter.Result) {
		r.Taken = min(r.Taken, ask.N)
	}},
	{name: "a retry is told in whole seconds", found: []string{"B4 bug: a denial tells when to ask again, for each algorithm", "any window holds what it may, and a retry passes on time"}, result: func(_ *keyModel, _ time.Duration, _ limiter.Request, r *limiter.Result) {
		r.RetryAfter = (r.RetryAfter + sec - 1).Truncate(sec)
	}},
	{name: "a retry is not told", found: []string{"B4 bug: a denial tells when to ask again, for each algorithm"}, result: func(_ *keyModel, _ time.Duration, _ limiter.Request, r *limiter.Result) { r.RetryAfter = 0 }},
	{name: "more than the limit passes", found: []string{"A2 bug: a first call above the capacity is refused at once, with no retry", "any number may be asked for"}, result: func(m *keyModel, _ time.Duration, ask limiter.Request, r *limiter.Result) {
		if ask.Kind == limiter.Take && ask.N > m.q.Burst {
			r.Allowed, r.Reason, r.Taken = true, rules.ReasonWithin, ask.N
		}
	}},
	{name: "limits of one key share its state", found: []string{"B8 bug: two limits of one key keep apart what was taken"}, op: func(_ *limiter.Op, id *[2]string) { id[0] = "" }},
	{name: "braces are cut from a key", found: []string{"A4: a key is any bytes, braces and all, and as long as it likes"}, op: func(_ *limiter.Op, id *[2]string) {
		if _, tag, ok := strings.Cut(id[1], "{"); ok {
			id[1], _, _ = strings.Cut(tag, "}")
		}
	}},
	{name: "a lock is prolonged", found: []string{"A3: a lock is not prolonged by what comes meanwhile"}, result: func(m *keyModel, now time.Duration, _ limiter.Request, r *limiter.Result) {
		if r.Reason == rules.ReasonLocked {
			m.until = now + m.q.Penalty
		}
	}},
	{name: "a lock lets through what asks for nothing", found: []string{"A3: the lock is checked first, whatever there is meanwhile"}, result: func(_ *keyModel, _ time.Duration, ask limiter.Request, r *limiter.Result) {
		if r.Reason == rules.ReasonLocked && ask.N == 0 {
			r.Allowed, r.Reason, r.RetryAfter = true, rules.ReasonWithin, 0
		}
	}},
	{name: "a reservation does not stand in line", found: []string{"G: a reservation is served later, in the order of asking"}, result: func(m *keyModel, _ time.Duration, ask limiter.Request, r *limiter.Result) {
		if ask.Kind == limiter.Reserve {
			r.Delay /= 2
		}
	}},
	{name: "batches are in no order", found: []string{"G: a batch asks for one key in its order"}, backwards: true},
}

var started = time.Now()

// twice counts all time that passes on a clock, including time that had passed before the clock
// went back.
func twice() func(last, now time.Duration) time.Duration {
	var read time.Duration
	return func(last, now time.Duration) time.Duration {
		passed := max(0, now-read)
		if last == 0 {
			passed = now
		}
		read = now
		return last + passed
	}
}

// overfill remembers the permits returned to a full bucket, and grants them.
func overfill() func(*keyModel, time.Duration, limiter.Request, *limiter.Result) {
	extra := map[*keyModel]int64{}
	return func(m *keyModel, _ time.Duration, ask limiter.Request, r *limiter.Result) {
		switch {
		case ask.Kind == limiter.Return && r.Allowed && r.Remaining == r.Limit:
			extra[m] += ask.N
		case ask.Kind == limiter.Take && !r.Allowed && ask.N > 0 && ask.N <= extra[m]:
			extra[m] -= ask.N
			r.Allowed, r.Reason, r.RetryAfter, r.Taken = true, rules.ReasonWithin, 0, ask.N
		}
	}
}

// TestMutants checks that each flaw is found by the case for it. The case runs in its own process,
// whose failure does not count here.
func TestMutants(t *testing.T) {
	const flawed, by = "LIMITERTEST_FLAW", "LIMITERTEST_CASE"
	if name := os.Getenv(flawed); name != "" {
		i := slices.IndexFunc(flaws, func(f flaw) bool { return f.name == name })
		testModels(t, flaws[i], 100, func(name string) bool { return name == os.Getenv(by) })
		return
	}
	for _, f := range flaws {
		found := f.found
		if testing.Short() {
			found = found[:1]
		}
		for _, name := range found {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutants$", "-rapid.nofailfile", "-rapid.shrinktime=0s")
				cmd.Env = append(os.Environ(), flawed+"="+f.name, by+"="+name)
				out, err := cmd.CombinedOutput()
				if err == nil {
					t.Fatal("it passes")
				}
				if !strings.Contains(string(out), "--- FAIL: TestMutants/") || strings.Contains(string(out), "panic:") {
					t.Fatalf("%v:\n%s", err, out)
				}
			})
		}
	}
}
