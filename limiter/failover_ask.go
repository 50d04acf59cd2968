package limiter

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// Do implements [Backend].
func (f *Failover) Do(ctx context.Context, op Op) (Result, error) {
	if op.Name == "" || op.Key == "" {
		return Result{}, ErrNoKey
	}
	if f.troubled() {
		var results [1]Result
		err := f.askEach(ctx, nil, []Op{op}, results[:])
		return results[0], ErrorOf(err, 0)
	}
	if res, ok := f.recall(&op); ok {
		return res, nil
	}
	step, op := stepOf(op)
	if step != pathWithin {
		return f.decideOwing(ctx, op, step)
	}
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	res, err := f.primary.Do(within, op)
	if err == nil {
		return f.recordGrant(within, began, op, res), nil
	}
	if f.recordFailure(ctx, began, op, err) {
		return f.decideOwing(ctx, op, pathWithin)
	}
	if ended(ctx) != nil && !concernsOp(err) {
		f.recordAbandoned(ctx, began, op, err)
	}
	return Result{}, endedWith(ctx, err)
}

// DoAll implements [Batcher]. It returns an [OpErrors] if some ops could not be decided at all;
// the others were decided.
func (f *Failover) DoAll(ctx context.Context, ops []Op, results []Result) error {
	return f.DoAllBy(ctx, nil, ops, results)
}

// DoAllBy is like DoAll, but views[i] decides ops[i] while the primary is unavailable. The
// views must be f or Failovers that f.With returned. Nil views means f for all ops.
func (f *Failover) DoAllBy(ctx context.Context, views []*Failover, ops []Op, results []Result) error {
	for i := range ops {
		if ops[i].Name == "" || ops[i].Key == "" {
			return ErrNoKey
		}
	}
	if f.batcher == nil || len(ops) == 0 {
		return eachInTurn(ops, results, func(i int) (Result, error) { return f.view(views, i).Do(ctx, ops[i]) })
	}
	if f.plain(ops) {
		return f.askAll(ctx, views, ops, results)
	}
	return f.askEach(ctx, views, ops, results)
}

// askEach decides each of ops where possible: from memory, locally, or by the primary, which
// gets its ops in one call. Once an ask with Together is denied, later ones with Together are
// not asked.
func (f *Failover) askEach(ctx context.Context, views []*Failover, ops []Op, results []Result) error {
	var (
		errs             OpErrors
		remaining, local opSubset
		nodes            admissions
		denied           bool
	)
	defer nodes.leaveAll()
	for i := range ops {
		if res, ok := f.recall(&ops[i]); ok {
			results[i] = res
			denied = denied || ops[i].together()
			continue
		}
		view := f.view(views, i)
		step, op := stepOf(ops[i])
		within := step == pathWithin && !f.down(ctx, op)
		if within {
			if res, beyond := view.beyondPart(ctx, op); beyond {
				results[i] = res
				denied = denied || op.together()
				continue
			}
		}
		switch {
		case within && nodes.admit(ctx, f, op):
			remaining.add(i, view, op)
		case op.together():
			local.add(i, view, op)
		default:
			var err error
			results[i], err = view.decideOwing(ctx, op, step)
			errs = setError(errs, len(ops), i, err)
		}
	}
	if denied {
		local.dropTogether(results)
	}
	if len(local.ops) > 0 {
		err := f.decideTogether(ctx, &local)
		errs = local.settle(results, errs, err)
		denied = deniedTogether(local.ops, local.results, err)
	}
	if denied {
		remaining.dropTogether(results)
	}
	if len(remaining.ops) > 0 {
		err := f.askAll(ctx, remaining.views, remaining.ops, remaining.results)
		errs = remaining.settle(results, errs, err)
	}
	return errs.asError()
}

// view returns the Failover that decides ops[i] while the primary is unavailable.
func (f *Failover) view(views []*Failover, i int) *Failover {
	if views == nil {
		return f
	}
	return views[i]
}

// troubled reports whether a node of the primary is unavailable, was until recently, or did not
// answer, or whether some charges to the primary are outstanding.
func (f *Failover) troubled() bool {
	return f.breakers.Any() || f.breakers.Doubted() || !f.breakers.Recovered() || f.owed.any()
}

// plain reports whether all of ops can go to the primary unchanged.
func (f *Failover) plain(ops []Op) bool {
	if f.troubled() || f.memory != nil {
		return false
	}
	for i := range ops {
		if ops[i].Receipt.path != 0 {
			return false
		}
	}
	return true
}

// recall returns the denial that the primary remembers for an op. It needs no node of the
// primary, and gives no information about any.
func (f *Failover) recall(op *Op) (Result, bool) {
	if f.memory == nil {
		return Result{}, false
	}
	return f.memory.recall(op)
}

// admissions holds the nodes that a call was admitted to.
type admissions struct {
	nodes  []string
	leaves []func()
}

// admit reports whether the call may ask the node of op's key.
func (a *admissions) admit(ctx context.Context, f *Failover, op Op) bool {
	if !f.breakers.Doubted() {
		return true
	}
	node := nodeOf(ctx, f.primary, op)
	if slices.Contains(a.nodes, node) {
		return true
	}
	leave, ok := f.breakers.Admit(node)
	if ok {
		a.nodes, a.leaves = append(a.nodes, node), append(a.leaves, leave)
	}
	return ok
}

func (a *admissions) leaveAll() {
	for _, leave := range a.leaves {
		leave()
	}
}

// askAll asks the primary for all of ops, and charges it with the permits owed for their keys.
func (f *Failover) askAll(ctx context.Context, views []*Failover, ops []Op, results []Result) error {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	all := f.sendOwing(within, began, ops, results)
	var (
		errs      OpErrors
		local     opSubset
		abandoned bool
	)
	for i := range ops {
		err, view := ErrorOf(all, i), f.view(views, i)
		switch {
		case err == nil:
			results[i] = view.recordGrant(within, began, ops[i], results[i])
			continue
		case f.recordFailure(ctx, began, ops[i], err):
			if ops[i].together() {
				local.add(i, view, ops[i])
				continue
			}
			results[i], err = view.decideOwing(ctx, ops[i], pathWithin)
		default:
			if ended(ctx) != nil && !concernsOp(err) && !abandoned {
				abandoned = true // one caller, however many ops
				f.recordAbandoned(ctx, began, ops[i], err)
			}
			results[i] = Result{}
		}
		errs = setError(errs, len(ops), i, endedWith(ctx, err))
	}
	if len(local.ops) > 0 {
		errs = local.settle(results, errs, f.decideTogether(ctx, &local))
	}
	return errs.asError()
}

// stepOf returns the step that took the permits of op, a Return, and op as the backend of that
// step knows it. The step of other kinds is pathWithin.
func stepOf(op Op) (path, Op) {
	if op.Receipt.path == 0 {
		return pathWithin, op
	}
	var step path
	step, op.Receipt.path = op.Receipt.path.split()
	if op.Kind != Return {
		step = pathWithin
	}
	return step, op
}

// down reports whether the node of op's key is unavailable.
func (f *Failover) down(ctx context.Context, op Op) bool {
	if !f.breakers.Any() {
		return false
	}
	if f.breakers.Away(ctx, "") { // there is only one node, or the node is not known
		return true
	}
	node := nodeOf(ctx, f.primary, op)
	return node != "" && f.breakers.Away(ctx, node)
}

// recordAnswer records that the primary answered a call that began at began.
func (f *Failover) recordAnswer(ctx context.Context, began time.Time, op Op) {
	if f.breakers.Wants(began) && f.breakers.Answered(nodeOf(ctx, f.primary, op), began) {
		f.owed.wake()
	}
}

// recordGrant records an answer of the primary to a call that began at began, and adds to the path
// of the receipt that the primary took the permits. ctx is that of the call.
func (f *Failover) recordGrant(ctx context.Context, began time.Time, op Op, res Result) Result {
	f.recordAnswer(ctx, began, op)
	if mirrored := f.mirrorLocally(ctx, op, res); mirrored < res.Taken && isDeniable(op) {
		if denial, denied := f.overdrawn(ctx, began, op, res, mirrored); denied {
			return denial
		}
	}
	res.Receipt.path = res.Receipt.path.via(pathWithin)
	return res
}

// recordFailure records an error of the primary, and reports whether the op is to be decided
// without it. An op is not if any backend would refuse it, or if its caller has left.
func (f *Failover) recordFailure(ctx context.Context, began time.Time, op Op, err error) bool {
	var alone *OpError
	switch {
	case unsound(op) || refusedByAll(err):
		f.recordAnswer(ctx, began, op)
		return false
	case errors.As(err, &alone):
		f.recordAnswer(ctx, began, op)
		f.opErrors.Add(1)
		f.logOpError(op.Name, err)
		return true
	case ended(ctx) != nil:
		return false
	}
	f.recordOutage(ctx, began, op, err)
	return true
}

// recordAbandoned records that the caller left before it had an answer. A caller that waited for
// less than a tenth of the time-out does not count: clients that hang up at once are no outage.
func (f *Failover) recordAbandoned(ctx context.Context, began time.Time, op Op, err error) {
	if time.Since(began) >= f.timeout/10 && f.breakers.Left(nodeOf(ctx, f.primary, op)) {
		f.recordOutage(ctx, began, op, err)
	}
}

// recordOutage records that the node of op's key failed, or did not answer in time.
func (f *Failover) recordOutage(ctx context.Context, began time.Time, op Op, err error) {
	f.failures.Add(1)
	sample := op
	sample.Key, sample.Request = strings.Clone(op.Key), Request{} // it outlives the request
	node := nodeOf(ctx, f.primary, op)
	if isTimeout(err) || errors.Is(err, context.Canceled) {
		f.timedOut.Add(1)
		f.breakers.TimedOut(node, began, err, sample)
		return
	}
	f.breakers.Failed(node, began, err, sample)
}

// isTimeout reports whether err means that there was no answer in time.
func isTimeout(err error) bool {
	var net interface{ Timeout() bool } // method of a net.Error, and of the context's error
	return errors.As(err, &net) && net.Timeout()
}

// unsound reports whether an op fails on every backend.
func unsound(op Op) bool { return op.Quota == nil || op.Quota.Validate() != nil }

// opErrorLines bounds the log lines about asks that the primary could not decide.
var opErrorLines = loglimit.LineRate{Burst: 1, Every: time.Minute}

// logOpError logs that the primary could not decide an ask.
func (f *Failover) logOpError(name string, err error) {
	if unlogged, ok := f.opErrorLog.Allow(opErrorLines, time.Now()); ok {
		f.logger.Warn("limiter: the backend cannot decide on a key; it is decided without the backend", "limiter", name, "error", err, "times", unlogged+1)
	}
}
