package limitertest

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

const returnsInAnyOrder = "what is returned, in whatever order, comes back unless it was earned"

// takeLedger is the reference of returnRun: a list of all takes with their unearned parts, in exact
// fractions. It has no marks and no sums that could go wrong.
type takeLedger struct {
	quota *rules.Quota
	rate  *big.Rat // permits per nanosecond of the fastest quota: a backend need not know when another quota came into force
	now   time.Duration
	takes []*ledgerTake // takes in the order in which they were made, and are earned
}

// ledgerTake is one take.
type ledgerTake struct {
	instant  time.Duration
	quota    *rules.Quota
	result   limiter.Result
	left     int64    // permits that have not been returned
	unearned *big.Rat // part of left that is not earned
	// blurred reports whether a backend may count more of the take as earned than is, because a
	// later take was returned before it. It may count no more than was earned of all takes since.
	blurred bool
	// changed reports whether the quota has changed since. A backend may then return nothing.
	changed bool
}

// pass earns the permits that are due up to now.
func (l *takeLedger) pass(now time.Duration) {
	earned := new(big.Rat).Mul(l.rate, big.NewRat(int64(now-l.now), 1))
	l.now = now
	for _, e := range l.takes {
		part := minRat(earned, e.unearned)
		e.unearned = new(big.Rat).Sub(e.unearned, part)
		earned = new(big.Rat).Sub(earned, part)
	}
}

// setQuota makes q the quota.
func (l *takeLedger) setQuota(q *rules.Quota) {
	if *l.quota == *q {
		return
	}
	l.quota = q
	for _, e := range l.takes {
		e.changed = true
	}
}

// blur blurs the first n takes.
func (l *takeLedger) blur(n int) {
	for _, e := range l.takes[:n] {
		e.blurred = true
	}
}

func (l *takeLedger) addTake(r limiter.Result) {
	l.takes = append(l.takes, &ledgerTake{
		instant: l.now, quota: l.quota, result: r, left: r.Taken, unearned: big.NewRat(r.Taken, 1),
	})
}

// giveBack returns n permits of e, and the least number that a backend must return: all of them
// that are not earned. If e is blurred, it may subtract the permits earned since.
func (l *takeLedger) giveBack(e *ledgerTake, n int64, final bool) (due *big.Rat) {
	due = minRat(e.unearned, big.NewRat(n, 1))
	switch {
	case e.instant == l.now:
	case e.changed:
		due = new(big.Rat)
	case e.blurred:
		since := new(big.Rat).Mul(l.rate, big.NewRat(int64(l.now-e.instant), 1))
		due = maxRat(new(big.Rat), due.Sub(due, since))
	}
	e.left -= n
	e.unearned = maxRat(new(big.Rat), new(big.Rat).Sub(e.unearned, big.NewRat(n, 1)))
	index := slices.Index(l.takes, e)
	switch {
	case index < len(l.takes)-1 || !final:
		l.blur(index)
	case e.left == 0:
		l.takes = l.takes[:index]
	}
	return due
}

func (l *takeLedger) missing() *big.Rat {
	sum := new(big.Rat)
	for _, e := range l.takes {
		sum.Add(sum, e.unearned)
	}
	return sum
}

// returnRun is a schedule of takes and returns of one bucket, and its ledger.
type returnRun struct {
	*rapid.T
	*modelKey
	ledger takeLedger
	quotas []*rules.Quota
	slack  *big.Rat // permits by which rounding may change the missing ones
	order  string   // order of the returns
	last   string
}

func (r *returnRun) Fatalf(format string, args ...any) { r.T.Fatalf(format, args...) }
func (r *returnRun) Helper()                           { r.T.Helper() }

// reloadRates differ by so little that rounding on a change from one to another is far below a
// permit.
var reloadRates = []rules.Rate{perSecond(1), perSecond(2), perSecond(5), perSecond(10), perMinute(60), perMinute(120)}

// testReturns checks returns of a bucket in any order and in parts, whatever it is asked. It must
// never get back a permit that was earned. It must get back all permits that were not earned, if
// takes are returned in reverse, in their order, or at their instant.
func testReturns(t *testing.T, c *Config) {
	for _, algorithm := range []rules.Algorithm{rules.TokenBucket, rules.GCRA, rules.LeakyBucket} {
		for _, quotas := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d quotas", algorithm, quotas), func(t *testing.T) {
				check(t, c, func(rt *rapid.T) { runReturns(t, rt, c, algorithm, quotas) })
			})
		}
	}
}

func runReturns(t *testing.T, rt *rapid.T, c *Config, algorithm rules.Algorithm, quotas int) {
	r := &returnRun{T: rt, slack: new(big.Rat), ledger: takeLedger{rate: new(big.Rat)}, order: rapid.SampledFrom([]string{"reverse", "in order", "any"}).Draw(rt, "order")}
	shape := quotas == 1 && algorithm == rules.LeakyBucket && rapid.Bool().Draw(rt, "shape")
	for range quotas {
		q := drawBucket(algorithm, reloadRates)(rt)
		q.Shape = shape
		q = q.WithDefaults()
		if !slices.Contains(c.kinds(&q), limiter.Return) || len(c.kinds(&q)) <= int(limiter.Return) {
			return
		}
		r.quotas = append(r.quotas, &q)
		r.ledger.rate = maxRat(r.ledger.rate, big.NewRat(q.Rate.N, int64(q.Rate.Per)))
	}
	r.modelKey = newWorldIn(t, rt, c).key(*r.quotas[0])
	r.ledger.quota, r.ledger.now = r.quotas[0], r.now()
	for range rapid.IntRange(1, 40).Draw(rt, "steps") {
		r.step()
	}
}

func (r *returnRun) step() {
	s := newSchedule(r.T, r.config, r.ledger.quota, nil)
	switch rapid.IntRange(0, 5).Draw(r.T, "time") {
	case 0:
		r.sleep(s.pause())
	case 1, 2:
		r.sleep(time.Duration(rapid.IntRange(1, 3).Draw(r.T, "steps of a microsecond")) * max(us, s.tick))
	}
	r.ledger.pass(r.now())
	if rapid.IntRange(0, 2).Draw(r.T, "return") == 0 {
		r.returnSome()
	} else {
		r.takeSome()
	}
	if off := new(big.Rat).Sub(r.ledger.missing(), r.missing(r.ledger.quota)); off.Cmp(r.slack) > 0 {
		r.Fatalf("%s: %s permits came back that were earned", r.last, off.FloatString(7))
	}
}

// missing returns how many permits the backend lacks under q.
func (r *returnRun) missing(q *rules.Quota) *big.Rat {
	return big.NewRat(int64(r.askUnder(q, peek(0)).ResetAfter)*q.Rate.N, int64(q.Rate.Per))
}

// askUnder asks under q. Each answer, and each change of the quota, may be rounded by as much as is
// earned in a tick.
func (r *returnRun) askUnder(q *rules.Quota, ask limiter.Request) limiter.Result {
	for _, q := range r.quotas {
		earned := big.NewRat(q.Rate.N*int64(r.config.tick()), int64(q.Rate.Per))
		r.slack = new(big.Rat).Add(r.slack, earned)
	}
	r.ledger.setQuota(q)
	op := r.op
	op.Quota, op.Request = q, ask
	return r.world.do(op)
}

func (r *returnRun) takeSome() {
	q := rapid.SampledFrom(r.quotas).Draw(r.T, "quota")
	ask := limiter.Request{
		Kind: rapid.SampledFrom([]limiter.OpKind{limiter.Take, limiter.Take, limiter.AtMost, limiter.Charge}).Draw(r.T, "kind"),
		N:    rapid.Int64Range(1, 4).Draw(r.T, "n"),
	}
	// A reservation is used at its promised time, whatever the quota is by then. A ledger cannot
	// represent that.
	if len(r.quotas) == 1 && rapid.IntRange(0, 3).Draw(r.T, "reserve") == 0 {
		ask.Kind, ask.Within = limiter.Reserve, 10*sec
	}
	got := r.askUnder(q, ask)
	r.last = describeRequest(ask)
	if got.Taken > 0 {
		r.ledger.addTake(got)
	}
}

// returnSome returns a take, or a part of it.
func (r *returnRun) returnSome() {
	held := slices.DeleteFunc(slices.Clone(r.ledger.takes), func(e *ledgerTake) bool { return e.left == 0 })
	if len(held) == 0 {
		return
	}
	i := len(held) - 1
	switch r.order {
	case "in order":
		i = 0
	case "any":
		i = rapid.IntRange(0, i).Draw(r.T, "of")
	}
	e := held[i]
	ask := e.result.Return()
	ask.N = e.left
	if rapid.IntRange(0, 3).Draw(r.T, "in parts") == 0 {
		ask.N = rapid.Int64Range(1, e.left).Draw(r.T, "part")
		ask.Keep = e.left - ask.N
	}
	before := r.missing(e.quota)
	r.askUnder(e.quota, ask)
	r.last = fmt.Sprintf("%s of the take at %v", describeRequest(ask), e.instant-epoch)
	lost := r.ledger.giveBack(e, ask.N, ask.Keep == 0)
	lost = new(big.Rat).Sub(lost, before.Sub(before, r.missing(e.quota)))
	if lost.Cmp(r.slack) > 0 {
		r.Fatalf("%s: %s permits did not come back that were not earned", r.last, lost.FloatString(7))
	}
}
