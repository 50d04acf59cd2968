package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// stallPrimary is a remote backend that stalls as Redis does. Calls during a stall are executed
// after it unless their deadline has passed, and a charge has an effect once.
type stallPrimary struct {
	fakeBatcher
	latency time.Duration
	strict  bool // checks deadlines

	state    sync.Mutex
	until    time.Time // end of the stall
	loses    bool      // loses replies
	resets   bool      // resets connections after the op was executed
	charged  map[string]limiter.Request
	executed map[string]int64 // takes and returns without an answer in time, by key
}

var errFakeReset = errors.New("connection reset by peer")

func newStallPrimary() *stallPrimary {
	return &stallPrimary{latency: time.Millisecond, strict: true, charged: map[string]limiter.Request{}, executed: map[string]int64{}}
}

// stallView is the backend as seen by one instance.
type stallView struct {
	*stallPrimary
	instance int
}

// stall stops the backend for d.
func (p *stallPrimary) stall(d time.Duration) {
	p.state.Lock()
	defer p.state.Unlock()
	p.until = time.Now().Add(d)
}

func (p *stallPrimary) fail(loses, resets bool) {
	p.state.Lock()
	defer p.state.Unlock()
	p.loses, p.resets = loses, resets
}

func (p stallView) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	select {
	case <-time.After(p.latency / 2):
	case <-ctx.Done():
		p.loseReturns(ops)
		return ctx.Err()
	}
	p.state.Lock()
	until := p.until
	p.state.Unlock()
	deadline, _ := ctx.Deadline()
	answer := make(chan error, 1)
	got := make([]limiter.Result, len(ops))
	go func() { // it is executed whether the caller waits or not
		time.Sleep(time.Until(until))
		if p.strict && !time.Now().Before(deadline) {
			p.loseReturns(ops)
			answer <- context.DeadlineExceeded
			return
		}
		answer <- p.execute(ctx, ops, got)
	}()
	select {
	case err := <-answer:
		select {
		case <-time.After(p.latency / 2):
			copy(results, got)
			return err
		case <-ctx.Done():
			p.lose(ops, got)
			return ctx.Err()
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// execute executes ops. It returns once the answer is there.
func (p stallView) execute(ctx context.Context, ops []limiter.Op, got []limiter.Result) error {
	p.state.Lock()
	for i := range ops {
		if op := &ops[i]; op.Kind == limiter.Charge && op.Mark > 0 {
			by := fmt.Sprint(p.instance, "/", op.Key)
			last := p.charged[by]
			switch {
			case last.Mark > op.Mark:
				op.N = 0
			case last.Mark == op.Mark:
				p.charged[by] = limiter.Request{Mark: op.Mark, N: max(op.N, last.N)}
				op.N = max(0, op.N-last.N)
			default:
				p.charged[by] = op.Request
			}
		}
	}
	loses, resets := p.loses, p.resets
	err := p.fakeBatcher.DoAll(context.Background(), ops, got)
	p.state.Unlock()
	if loses || resets || ctx.Err() != nil {
		p.lose(ops, got)
	}
	switch {
	case resets:
		return errFakeReset
	case loses:
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// loseReturns records returns that were lost, whose permits stay taken.
func (p stallView) loseReturns(ops []limiter.Op) {
	p.state.Lock()
	defer p.state.Unlock()
	for i := range ops {
		if ops[i].Kind == limiter.Return {
			p.executed[ops[i].Key] += ops[i].N
		}
	}
}

// lose records takes that were executed without an answer.
func (p stallView) lose(ops []limiter.Op, got []limiter.Result) {
	p.state.Lock()
	defer p.state.Unlock()
	for i := range ops {
		if ops[i].Kind == limiter.Take {
			p.executed[ops[i].Key] += got[i].Taken
		}
	}
}

func (p stallView) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	results := make([]limiter.Result, 1)
	err := p.DoAll(ctx, []limiter.Op{op}, results)
	return results[0], limiter.ErrorOf(err, 0)
}

// stallFlood asks for random keys of a limit, from several instances, while the backend stalls.
type stallFlood struct {
	instances []limiter.Backend
	quota     rules.Quota
	keys      int
	admitted  []int64
	longest   time.Duration
	mu        sync.Mutex
	callers   sync.WaitGroup
}

func (f *stallFlood) ask(t *testing.T, instance, key int) {
	f.callers.Go(func() {
		res, took := mustDo(t, f.instances[instance], fakeOp(limiter.Take, fmt.Sprint(key), 1, &f.quota))
		f.mu.Lock()
		defer f.mu.Unlock()
		f.admitted[key] += res.Taken
		f.longest = max(f.longest, took)
	})
}

// A flooded backend stalls once, for any time and at any time, and loses any answers. One instance
// admits at most the limit of each key, and each of several at most its share more. Nothing is
// charged twice: a key loses at most the permits that were taken, or returned in vain, without an
// answer. No request waits for longer than one timeout.
func TestStallProperty(t *testing.T) {
	checkInBubble(t, func(rt *rapid.T) {
		const limit, keys = 6, 8
		p := newStallPrimary()
		n := rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(rt, "instances")
		flood := stallFlood{quota: rules.Quota{Rate: rules.Rate{N: limit, Per: 1000 * time.Hour}, Burst: limit}, keys: keys, admitted: make([]int64, keys)}
		var all []*limiter.Failover
		for i := range n {
			var inner limiter.Backend = stallView{p, i}
			if rapid.Bool().Draw(rt, "cached") {
				inner = newCached(t, inner, 0)
			}
			local, err := limiter.NewMemory(limiter.MemoryConfig{})
			if err != nil {
				rt.Fatal(err)
			}
			f := newFailover(t, inner, limiter.FailoverConfig{Local: local, Instances: func() int { return n }})
			if rapid.Bool().Draw(rt, "runs") {
				defer runInBubble(t, f.Run)()
			}
			flood.instances, all = append(flood.instances, f), append(all, f)
		}
		asks := rapid.IntRange(20, 200).Draw(rt, "asks")
		at := rapid.IntRange(0, asks-1).Draw(rt, "stalls at")
		stall := time.Duration(rapid.IntRange(5, 500).Draw(rt, "stall")) * time.Millisecond
		after := rapid.SampledFrom([]string{"answers", "answers", "loses replies", "resets"}).Draw(rt, "after it")
		every := time.Duration(rapid.IntRange(20, 2000).Draw(rt, "every")) * time.Microsecond
		for i := range asks {
			if i == at {
				p.stall(stall)
				p.fail(after == "loses replies", after == "resets")
				time.AfterFunc(stall+5*time.Millisecond, func() { p.fail(false, false) })
			}
			flood.ask(t, rapid.IntRange(0, n-1).Draw(rt, "instance"), rapid.IntRange(0, keys-1).Draw(rt, "key"))
			time.Sleep(every)
		}
		flood.callers.Wait()
		time.Sleep(10 * time.Second)
		for key := range keys { // also where Run does not charge
			for i := range n {
				flood.ask(t, i, key)
				flood.callers.Wait()
			}
		}
		part, _ := limiter.Share(&flood.quota, n)
		for key, admitted := range flood.admitted {
			if most := limit + int64(n-1)*part.Burst; admitted > most {
				rt.Errorf("key %d: %d admitted of %d, by %d instances", key, admitted, limit, n)
			}
			res, _ := mustDo(t, &p.fake, fakeOp(limiter.Peek, fmt.Sprint(key), 1, &flood.quota))
			taken := limit - res.Remaining
			if lost := p.executed[fmt.Sprint(key)]; taken > admitted+lost || taken < min(admitted, limit) {
				rt.Errorf("key %d: %d admitted, %d taken of the backend, %d of them without an answer", key, admitted, taken, lost)
			}
		}
		if flood.longest > limiter.DefaultTimeout {
			rt.Errorf("a request took %v", flood.longest)
		}
		for _, f := range all {
			if s := f.Stats(); s.Owing > 0 || s.Dropped > 0 {
				rt.Errorf("%+v", s)
			}
		}
		if rt.Failed() || t.Failed() {
			rt.FailNow()
		}
	})
}
