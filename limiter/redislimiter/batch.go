package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
)

// batch holds the ops of one DoAll.
type batch struct {
	store   *Store
	ops     []limiter.Op
	results []limiter.Result
	plans   []*plan
	about   map[int]int64    // time, in µs, for ops that were sent with the wrong periods
	errs    limiter.OpErrors // nil if there are none
}

// opGroup is a script to run, and the indices of its ops. The ops that are Together come last.
type opGroup struct {
	call     call
	ops      []int
	together int // number of ops that are Together
	clock    *clock
}

// maxTries bounds how often an op is sent. It is sent again only if the clocks differed by more
// than was known. Either its calendar's periods that were sent do not contain the script's time,
// or the script took the deadline to be past.
const maxTries = 3

var errClock = errors.New("the clock of Redis jumps: in each try it was outside the periods of the calendar that were sent")

// do executes all ops, and returns the errors of the undecided ones.
func (b *batch) do(ctx context.Context) error {
	todo := make([]int, 0, len(b.ops))
	for i := range b.ops {
		var err error
		switch b.plans[i], err = b.store.plan(&b.ops[i]); {
		case err != nil:
			b.fail(i, err)
		case b.plans[i].script == nil:
			b.results[i] = unlimited(&b.ops[i].Request)
		default:
			todo = append(todo, i)
		}
	}
	for range maxTries {
		if len(todo) == 0 {
			break
		}
		groups, sent := b.groups(ctx, todo), time.Now()
		calls := make([]*call, len(groups))
		for k, p := range groups {
			calls[k] = &p.call
		}
		_ = run(ctx, b.store.client, calls...) // each call has its own error
		todo = todo[:0]
		for _, p := range groups {
			var err error
			if todo, err = b.readResults(ctx, p, sent, todo); err != nil {
				for _, i := range p.ops {
					b.fail(i, backendError(ctx, err))
				}
			}
		}
	}
	for _, i := range todo {
		if _, known := b.about[i]; known {
			b.fail(i, &limiter.OpError{Err: errClock})
		} else {
			b.fail(i, errLate)
		}
	}
	if b.errs == nil {
		return nil
	}
	return b.errs
}

// fail sets the error of the i-th op.
func (b *batch) fail(i int, err error) {
	if b.errs == nil {
		b.errs = make(limiter.OpErrors, len(b.ops))
	}
	b.errs[i] = fmt.Errorf("redislimiter: %w", err)
}

// readResults stores the results of a script, and appends the ops to send again. An error concerns
// all ops of the script.
func (b *batch) readResults(ctx context.Context, p *opGroup, sent time.Time, again []int) ([]int, error) {
	if err := p.call.cmd.Err(); err != nil {
		return again, err
	}
	raw := b.store.parseReply(p.call.cmd.Val())
	answer, now, err := readReply(raw.packed, len(p.ops))
	if err == nil || errors.Is(err, errLate) {
		p.clock.observe(sent, now)
	}
	switch {
	case errors.Is(err, errLate) && ended(ctx) == nil:
		return append(again, p.ops...), nil
	case errors.Is(err, errLate):
		return again, errLate
	case err != nil:
		return again, &limiter.OpError{Err: err}
	}
	for k, i := range p.ops {
		result, about, resend, err := answer.result(k, now, b.plans[i].limit)
		switch {
		case errors.Is(err, errFailed):
			b.fail(i, backendError(context.Background(), raw.failure()))
			continue
		case err != nil:
			b.fail(i, &limiter.OpError{Err: err})
			continue
		case !resend:
			b.results[i] = result
			continue
		case b.about == nil:
			b.about = make(map[int]int64)
		}
		b.about[i] = about
		again = append(again, i)
	}
	return again, nil
}

// groups returns the scripts to run. A single server gets one for all keys. A cluster gets one per
// tag, since only keys of the same tag are known to be in the same slot. Ops are Together within
// their script. The scripts of a cluster run in parallel: one after the other, they would cost
// each request that passes as many round trips.
func (b *batch) groups(ctx context.Context, todo []int) (groups []*opGroup) {
	_, single := b.store.client.(*redis.Client)
	byTag := make(map[string]*opGroup)
	for _, last := range [...]bool{false, true} {
		for _, i := range todo {
			op := &b.ops[i]
			if isTogether(&op.Request) != last {
				continue
			}
			base, tag := b.store.keyName(op.Name, op.Key)
			if single {
				tag = ""
			}
			group := byTag[tag]
			if group == nil {
				clock := b.store.clockOf(ctx, base)
				group = &opGroup{call: call{script: b.plans[i].script, args: []any{b.store.head(ctx, clock)}}, clock: clock}
				byTag[tag] = group
				groups = append(groups, group)
			}
			if group.call.script != b.plans[i].script {
				group.call.script = mixedScript
			}
			group.ops = append(group.ops, i)
			group.call.keys = b.plans[i].appendKeys(group.call.keys, base, b.store.name, &op.Request)
			if last {
				group.together++
			}
		}
	}
	for _, p := range groups {
		for _, i := range p.ops {
			now, known := b.about[i]
			if !known {
				now = b.store.now(p.clock)
			}
			p.call.args = append(p.call.args, b.plans[i].encodeAsk(&b.ops[i].Request, now, p.together > 1))
		}
	}
	return groups
}

// together is added to the kind of an ask, as in lua/time.lua.
const together = 8

// isTogether reports whether the ask takes only if the others that are Together are allowed.
func isTogether(ask *limiter.Request) bool { return ask.Together && ask.Kind <= limiter.Reserve }

// maxAsked bounds the permits that a single ask can count for, whatever the limit.
const maxAsked = 1 << 40

// encodeAsk encodes an op for lua/run.lua. Numbers that are too large to matter are reduced, so
// that no sum of them exceeds what the script can count. now is the approximate time that the
// script will see. Without others an ask is not Together.
func (p *plan) encodeAsk(ask *limiter.Request, now int64, others bool) string {
	beyond := p.limit + 1
	n := max(ask.N, -1)
	if ask.Kind == limiter.Return || ask.Kind == limiter.Charge || p.quota.CountDenied {
		n = min(n, max(beyond, maxAsked))
	} else {
		n = min(n, beyond)
	}
	keep := min(max(ask.Keep, 0), beyond)
	within := min(max(int64(ask.Within/time.Microsecond), 0), p.longest)
	mark := min(max(ask.Mark, 0), maxWhole)
	since := min(max(ask.Receipt.At.Microseconds(), 0), maxWhole)
	var room [256]byte
	kind := ask.Kind
	if others && isTogether(ask) {
		kind += together
	}
	b := append(room[:0], p.letter)
	b = appendNumbers(b, float64(kind), float64(n), float64(keep), float64(within), float64(mark), float64(since))
	b = append(b, p.numbers...)
	if p.script == windowScript {
		b = p.appendPeriods(b, now, within)
	}
	return string(b)
}
