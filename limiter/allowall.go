package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Claim is one of the limits that a request is held to: N permits of Key, provided that
// Keep are left afterwards.
type Claim struct {
	Limiter *Limiter
	Key     string
	N       int64
	Keep    int64
}

// AllowAll takes the permits of all limits, or none. It asks limiters on one [Batcher] in one
// call, and Together: if one of them denies, the others take nothing. Limiters in memory are
// asked before other backends. After a denial AllowAll returns the permits that others granted,
// and only peeks at the rest.
//
// Among several denials it returns one with a RetryAfter of 0, which no waiting helps, or else
// the one with the longest RetryAfter. If all allow, it returns the decision with the least
// Remaining, and the longest Delay of all. An error means that nothing was taken, except by a
// backend that itself failed: the number of permits which that one took is unknown.
func AllowAll(ctx context.Context, asked ...Claim) (rules.Decision, error) {
	for i := range asked {
		switch {
		case asked[i].Limiter == nil:
			return rules.Decision{}, errors.New("limiter: AllowAll: a limit without a limiter")
		case asked[i].Key == "":
			return rules.Decision{}, ErrNoKey
		case asked[i].Limiter.quota.Load() == nil:
			return rules.Decision{}, asked[i].Limiter.invalid
		}
	}
	r := allRounds.Get().(*allRound)
	defer r.recycle()
	for i := range asked {
		a := &asked[i]
		r.items = append(r.items, allItem{limiter: a.Limiter, op: a.Limiter.op(a.Key, Request{Kind: Take, N: a.N, Keep: a.Keep, Together: true})})
	}
	err := r.do(ctx)
	if err == nil {
		if d := r.decision(); d.Allowed || !r.took() {
			return d, nil
		}
	}
	if err = errors.Join(err, r.giveBack(ctx)); err != nil {
		return rules.Decision{}, err
	}
	return r.decision(), nil
}

// allRound is one call of AllowAll. Its slices are reused.
type allRound struct {
	items   []allItem
	ops     []Op // ops of one call
	results []Result
}

type allItem struct {
	limiter     *Limiter
	op          Op
	done        bool
	firstOfCall int // index of the first item that was asked in the same call
	res         Result
}

var allRounds = sync.Pool{New: func() any { return new(allRound) }}

// maxAll is the number of limits for which a round keeps its slices.
const maxAll = 64

func (r *allRound) recycle() {
	if cap(r.items) > maxAll {
		return
	}
	clear(r.items)
	clear(r.ops[:cap(r.ops)])
	clear(r.results[:cap(r.results)])
	r.items = r.items[:0]
	allRounds.Put(r)
}

// do asks all limits that are not done, in one call for each batcher, and those in memory
// first. After a denial it only peeks at the others.
func (r *allRound) do(ctx context.Context) (err error) {
	for _, here := range [...]bool{true, false} {
		for i := range r.items {
			if it := &r.items[i]; it.done || (it.limiter.memory != nil) != here {
				continue
			}
			if r.denied() {
				for k := range r.items {
					r.items[k].op.Kind = Peek
				}
			}
			if failed := r.askBatch(ctx, i); failed != nil {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

func (r *allRound) denied() bool {
	return slices.ContainsFunc(r.items, func(it allItem) bool { return it.done && !it.res.Allowed })
}

// askBatch asks the limit of item first, and with it all later ones on the same batcher.
func (r *allRound) askBatch(ctx context.Context, first int) error {
	l := r.items[first].limiter
	r.ops = r.ops[:0]
	for i := first; i < len(r.items); i++ {
		it := &r.items[i]
		if i == first || l.batcher != nil && it.limiter.batcher == l.batcher { // which is not done either
			it.done, it.firstOfCall = true, first
			r.ops = append(r.ops, it.op)
		}
	}
	if len(r.ops) == 1 {
		return l.do(ctx, &r.ops[0], &r.items[first].res)
	}
	r.results = append(r.results[:0], make([]Result, len(r.ops))...)
	err := l.batcher.DoAll(ctx, r.ops, r.results)
	index := 0
	for i := first; i < len(r.items); i++ {
		if it := &r.items[i]; it.done && it.firstOfCall == first {
			if ErrorOf(err, index) == nil {
				it.res = r.results[index]
				it.res.Rule = it.limiter.name
			}
			index++
		}
	}
	if err != nil {
		return fmt.Errorf("limiter %q and others: %w", l.name, endedWith(ctx, err))
	}
	return nil
}

func (r *allRound) took() bool {
	return slices.ContainsFunc(r.items, func(it allItem) bool { return it.res.Taken > 0 })
}

// giveBack returns all permits taken, in one call for each batcher. The items keep their
// decisions.
func (r *allRound) giveBack(ctx context.Context) error {
	back := allRound{items: make([]allItem, 0, len(r.items))}
	for i := range r.items {
		if it := r.items[i]; it.res.Taken > 0 {
			it.op.Request, it.done = it.res.Return(), false
			back.items = append(back.items, it)
		}
	}
	ctx, cancel := grace(ctx)
	defer cancel()
	var err error
	for i := range back.items {
		if !back.items[i].done {
			err = errors.Join(err, back.askBatch(ctx, i))
		}
	}
	if err != nil {
		return fmt.Errorf("limiter: return permits: %w", err)
	}
	return nil
}

// decision returns the decision that outweighs the others. If all allow, it has the longest
// Delay of all.
func (r *allRound) decision() rules.Decision {
	strictest, delay := rules.Decision{Allowed: true}, time.Duration(0)
	for i := range r.items {
		d := &r.items[i].res.Decision
		if i == 0 || outweighs(d, &strictest) {
			strictest = *d
		}
		delay = max(delay, d.Delay)
	}
	if strictest.Allowed {
		strictest.Delay = delay
	}
	return strictest
}

// outweighs reports whether a restricts a request more than b.
func outweighs(a, b *rules.Decision) bool {
	switch {
	case a.Allowed != b.Allowed:
		return b.Allowed
	case !a.Allowed:
		return b.RetryAfter != 0 && (a.RetryAfter == 0 || a.RetryAfter > b.RetryAfter)
	case a.Limit <= 0 || b.Limit <= 0: // unlimited
		return a.Limit > 0
	}
	return a.Remaining < b.Remaining
}
