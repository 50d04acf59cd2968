package limiter

import (
	"context"
	"slices"
	"time"

	"github.com/hotparam/hotparam/rules"
)

const (
	// settleSize is the maximum number of keys that Run charges in one call.
	settleSize = 256
	// settleMin and settleMax bound the time between two calls of Run that charge the primary,
	// while it does not answer.
	settleMin, settleMax = 5 * time.Millisecond, time.Second
)

// decideOwing decides without the primary, and records local grants in the ledger.
func (f *Failover) decideOwing(ctx context.Context, op Op, step path) (Result, error) {
	if f.outage == rules.OutageOpen || f.outage == rules.OutageClosed || step == pathNobody || op.Quota == nil {
		return f.decide(ctx, op, step)
	}
	s := f.owed.lock(op.Name, op.Key)
	res, err := f.decide(ctx, op, step)
	var giveBack Request
	switch {
	case err != nil || op.Quota.Burst == rules.Unlimited:
	case step == pathHere && op.N > 0:
		giveBack = s.giveBack(&op, op.N-f.owed.reduce(s, &op, op.N))
	case step == pathWithin && res.Taken > 0:
		f.owed.add(s, &op, &res, f.instances())
	}
	s.mu.Unlock()
	if op.Request = giveBack; giveBack.N > 0 && !f.down(ctx, op) { // otherwise the permits stay taken
		within, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		_, _ = f.primary.Do(within, op)
	}
	return res, err
}

// overdrawn is called with a grant of the primary for which the local backend could take only
// mirrored permits. Local grants that the primary did not know of may have used up the granted
// permits. The op is then denied, unless the local backend allows it: its permits pay for the
// local grants, and the rest is returned. The same holds after an outage, for as long as other
// instances may have grants that the primary does not know of: if each keeps to its part, all
// together keep to the quota. Whatever the primary has left says nothing about that.
func (f *Failover) overdrawn(ctx context.Context, began time.Time, op Op, res Result, mirrored int64) (denial Result, denied bool) {
	until := f.recovering(ctx, op)
	s := f.owed.lock(op.Name, op.Key)
	unknown := s.unknown(&op, began)
	if unknown == 0 && until == 0 {
		s.mu.Unlock()
		return denial, false
	}
	peek := op
	peek.Kind = Peek
	denial, err := f.decideLocally(ctx, peek)
	if err != nil || denial.Allowed {
		s.mu.Unlock()
		return Result{}, false
	}
	if unknown == 0 {
		denial.RetryAfter = min(denial.RetryAfter, until)
	}
	paid := f.owed.reduce(s, &op, res.Taken)
	s.mu.Unlock()
	if op.Request = res.Return(); mirrored > 0 {
		op.Request.N = mirrored
		_, _ = f.returnLocally(ctx, op)
		op.Request = res.Return()
	}
	if op.N -= paid; op.N > 0 {
		_, _ = f.primary.Do(ctx, op) // otherwise the permits stay taken
	}
	return denial, true
}

// settling is the number of time-outs after which an instance that the primary answers again has
// charged its grants.
const settling = 2

// recovering returns for how long other instances may have local grants of op's key that they
// have not charged, after an outage.
func (f *Failover) recovering(ctx context.Context, op Op) time.Duration {
	if f.outage != rules.OutageLocal || f.breakers.Recovered() || f.instances() < 2 {
		return 0
	}
	return f.breakers.Recovering(nodeOf(ctx, f.primary, op))
}

// beyondPart returns the denial of an op that exceeds this instance's part after an outage, when
// overdrawn would deny what the primary grants. So nothing is taken there in vain. A denial that
// has effects is left to the primary, and so is an ask that brings it a charge.
func (f *Failover) beyondPart(ctx context.Context, op Op) (denial Result, denied bool) {
	if f.owed.any() || !isDeniable(op) || op.Quota == nil || op.Quota.Penalty > 0 || op.Quota.CountDenied {
		return denial, false
	}
	until := f.recovering(ctx, op)
	if until == 0 {
		return denial, false
	}
	op.Kind = Peek
	denial, err := f.decideLocally(ctx, op)
	denial.RetryAfter = min(denial.RetryAfter, until)
	return denial, err == nil && !denial.Allowed && denial.RetryAfter > 0
}

// sendOwing sends ops to the primary in one call, each after the Charge that is owed for its
// key. If no Run charges the other keys, the call charges some of them.
func (f *Failover) sendOwing(ctx context.Context, began time.Time, ops []Op, results []Result) error {
	if !f.owed.any() {
		return f.send(ctx, ops, results)
	}
	due := f.charges(nil, ops)
	if f.running.Load() == 0 && !f.breakers.Any() {
		due = f.charges(due, f.owed.some(settleSize/8, time.Now()))
	}
	all := make([]Op, 0, len(due)+len(ops))
	for i := range due {
		all = append(all, due[i].op)
	}
	got := make([]Result, cap(all))
	err := f.send(ctx, append(all, ops...), got)
	for i := range due {
		f.owed.record(&due[i], began, got[i], ErrorOf(err, i))
	}
	copy(results, got[len(due):])
	var errs OpErrors
	for i := range ops {
		errs = setError(errs, len(ops), i, ErrorOf(err, len(due)+i))
	}
	return errs.asError()
}

// charges appends the owed Charges for the keys of ops to due, one for each key.
func (f *Failover) charges(due []settlement, ops []Op) []settlement {
	now := time.Now()
	for i := range ops {
		same := func(c settlement) bool { return c.op.Key == ops[i].Key && c.op.Name == ops[i].Name }
		if slices.ContainsFunc(due, same) {
			continue
		}
		if c, ok := f.owed.chargeFor(&ops[i], now); ok {
			due = append(due, c)
		}
	}
	return due
}

// send sends ops to the primary. A memory of denials was consulted before.
func (f *Failover) send(ctx context.Context, ops []Op, results []Result) error {
	switch {
	case f.batcher == nil:
		return eachInTurn(ops, results, func(i int) (Result, error) { return f.primary.Do(ctx, ops[i]) })
	case len(ops) == 1:
		var err error
		results[0], err = f.primary.Do(ctx, ops[0])
		return err
	}
	return f.batcher.DoAll(ctx, ops, results)
}

// runSettle charges owed permits to the primary once it answers, until ctx ends.
func (f *Failover) runSettle(ctx context.Context) {
	f.running.Add(1)
	defer f.running.Add(-1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for delay := settleMin; ; {
		if !f.owed.any() {
			delay = settleMin
			select {
			case <-ctx.Done():
				return
			case <-f.owed.filled:
			}
		}
		timer.Reset(delay)
		select {
		case <-ctx.Done():
			f.settleSome(context.WithoutCancel(ctx))
			return
		case <-f.owed.filled:
		case <-timer.C:
		}
		if delay = min(2*delay, settleMax); f.settleSome(ctx) {
			delay = settleMin
		}
	}
}

// settleSome charges some of the owed permits to the primary, and reports whether it answered.
func (f *Failover) settleSome(ctx context.Context) (answered bool) {
	within, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	ops := f.owed.some(settleSize, time.Now())
	if f.breakers.Any() {
		ops = slices.DeleteFunc(ops, func(op Op) bool { return f.down(within, op) })
	}
	now, due := time.Now(), make([]settlement, 0, len(ops))
	for i := range ops {
		if c, ok := f.owed.chargeFor(&ops[i], now); ok {
			due, ops[len(due)] = append(due, c), c.op
		}
	}
	if ops = ops[:len(due)]; len(due) == 0 {
		return false
	}
	got := make([]Result, len(ops))
	all := f.send(within, ops, got)
	failed := false
	for i := range due {
		err := ErrorOf(all, i)
		f.owed.record(&due[i], now, got[i], err)
		switch {
		case err == nil:
			answered = true
			f.recordAnswer(ctx, now, ops[i])
		case !concernsOp(err) && !failed && ctx.Err() == nil:
			failed = true // one call, however many keys
			f.recordOutage(ctx, now, ops[i], err)
		}
	}
	return answered
}
