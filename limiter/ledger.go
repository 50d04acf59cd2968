package limiter

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// ledger holds the permits that a [Failover] granted locally and has not charged to its primary
// yet.
//
// A key has one entry, whose permits go to the primary in one Charge. A Charge without an
// answer may have been executed nevertheless. So it is sent again under the same number and
// with the same permits or more, and the primary charges only those beyond the earlier ones.
type ledger struct {
	seed   maphash.Seed
	shards [ledgerShards]ledgerShard
	held   atomic.Int64  // entries
	owing  atomic.Int64  // entries with owed permits
	turn   atomic.Uint32 // the shard to begin with
	filled chan struct{} // wakes Run; capacity 1

	settled, dropped atomic.Uint64 // permits
}

const (
	ledgerShards = 16 // a power of two
	// maxLedger is the number of keys in a ledger. Grants of further keys are not charged.
	maxLedger = 1 << 14
	// ledgerSpan is the least time for which all grants of a bucket are charged, dated back. It is
	// longer for a bucket that takes longer to fill. The primary has earned them again unless
	// others took what it earned. After that an entry continues with what this instance's part
	// lacks. If all were without the primary, its own account of them is full by then, and what
	// the parts lack together is what it should lack.
	ledgerSpan = 100 * time.Millisecond
	// ledgerMemory is the minimum time for which the primary knows the number of a Charge.
	ledgerMemory = 50 * time.Second
	// maxUnsent bounds the permits of one Charge, far from any overflow.
	maxUnsent = 1 << 40
)

type ledgerShard struct {
	mu   sync.Mutex
	keys map[ledgerKey]*ledgerEntry
}

type ledgerKey struct{ name, key string }

// ledgerEntry holds the permits owed for one key.
type ledgerEntry struct {
	quota   *rules.Quota  // the latest quota
	number  int64         // number of the Charge
	n       int64         // permits that were granted under that number
	sent    int64         // the most permits that a Charge named
	settled int64         // permits that are known to be charged
	from    time.Time     // the time at which the Charge counts as made
	named   time.Time     // when the number was given
	part    time.Duration // time in which this instance's part earns a permit
	span    time.Duration // ledgerSpan, or the time in which the whole bucket fills
	missing int64         // what the part lacked after the last grant
	last    time.Time     // time of the last grant
	charged Request       // a Return of the last Charge
	acks    []ledgerAck   // the last confirmed Charges
}

// ledgerAck is a Charge that the primary confirmed.
type ledgerAck struct {
	answered time.Time // time of the answer
	began    time.Time // beginning of the call that brought the answer
	n        int64
}

// maxAcks is the number of confirmed Charges remembered for a key.
const maxAcks = 8

// settlement is a Charge of the permits owed for a key.
type settlement struct {
	key    ledgerKey
	number int64
	n      int64
	op     Op
}

// charges is the last number of an entry, of any ledger in the process.
var charges atomic.Int64

func newLedger() *ledger {
	l := &ledger{seed: maphash.MakeSeed(), filled: make(chan struct{}, 1)}
	for i := range l.shards {
		l.shards[i].keys = make(map[ledgerKey]*ledgerEntry)
	}
	return l
}

// any reports whether any permits are owed.
func (l *ledger) any() bool { return l.owing.Load() > 0 }

// lock returns the locked shard of a key. A caller that decides on a key locally holds the lock
// throughout, so that an answer of the primary finds either all of a local grant or nothing.
func (l *ledger) lock(name, key string) *ledgerShard {
	s := l.shard(name, key)
	s.mu.Lock()
	return s
}

func (l *ledger) shard(name, key string) *ledgerShard {
	h := maphash.String(l.seed, key) ^ bits.RotateLeft64(maphash.String(l.seed, name), 32)
	return &l.shards[h%ledgerShards]
}

// lockAll returns the locked shards of the keys of ops, each shard once.
func (l *ledger) lockAll(ops []Op) (locked []*ledgerShard) {
	var wanted [ledgerShards]bool
	for i := range ops {
		for k, s := 0, l.shard(ops[i].Name, ops[i].Key); k < ledgerShards; k++ {
			wanted[k] = wanted[k] || s == &l.shards[k]
		}
	}
	for k := range wanted { // all callers lock in this order
		if wanted[k] {
			l.shards[k].mu.Lock()
			locked = append(locked, &l.shards[k])
		}
	}
	return locked
}

// add records that res was granted locally, by one of so many instances. The caller holds the lock.
func (l *ledger) add(s *ledgerShard, op *Op, res *Result, instances int) {
	n := res.Taken
	now := time.Now()
	e := s.keys[ledgerKey{op.Name, op.Key}]
	if e == nil {
		if l.held.Add(1) > maxLedger {
			l.held.Add(-1)
			l.dropped.Add(uint64(n))
			return
		}
		e = new(ledgerEntry)
		s.keys[ledgerKey{op.Name, strings.Clone(op.Key)}] = e
	}
	e.quota, e.part = op.Quota, partInterval(op.Quota.Rate, int64(max(instances, 1)))
	e.span = max(partInterval(op.Quota.Rate, op.Quota.Burst), ledgerSpan)
	if e.n == e.settled {
		e.renew(0, now)
		if l.owing.Add(1) == 1 {
			l.wake()
		}
	}
	e.age(now)
	lacked := max(res.Limit-res.Remaining-n, e.lacks(now))
	if lacked <= 0 && !e.quota.Algorithm.Windowed() {
		switch old := now.Sub(e.named) >= e.span; { // the part was full: it has earned all of them
		case old && e.sent > e.settled:
			e.n = e.sent
		case old:
			e.renew(0, now)
		}
		e.from = now // an earlier date would earn permits twice
	}
	e.n, e.missing, e.last = min(e.n+n, maxUnsent), lacked+n, now
}

// renew continues an entry with n permits, under a new number.
func (e *ledgerEntry) renew(n int64, from time.Time) {
	*e = ledgerEntry{
		quota: e.quota, part: e.part, span: e.span, missing: e.missing, last: e.last, charged: e.charged, acks: e.acks,
		number: charges.Add(1), n: n, from: from, named: time.Now(),
	}
}

// closeEntry ends the debt of an entry. The entry stays for as long as charged permits may be
// returned.
func (l *ledger) closeEntry(e *ledgerEntry) {
	l.owing.Add(-1)
	e.renew(0, time.Now())
}

// wake notifies Run that there is something to charge.
func (l *ledger) wake() { base.Notify(l.filled) }

// partInterval returns the time in which a part of one in n of a rate earns a permit, and the whole
// rate n permits.
func partInterval(r rules.Rate, n int64) time.Duration {
	return time.Duration(min(float64(r.Interval())*float64(n), maxFill))
}

// lacks returns how many permits this instance's part lacks.
func (e *ledgerEntry) lacks(now time.Time) int64 {
	return max(0, e.missing-int64(now.Sub(e.last)/max(e.part, 1)))
}

// age brings an old entry up to date. A bucket's continues with the permits that are still owed.
// Those that a Charge named stay, since it may have been executed, until its number is forgotten.
// A window keeps its permits at the time of the first, and gets them back a little early rather
// than late.
func (e *ledgerEntry) age(now time.Time) {
	age, named := now.Sub(e.from), e.sent > e.settled && now.Sub(e.named) < ledgerMemory
	switch windowed := e.quota.Algorithm.Windowed(); {
	case windowed && age >= e.quota.Rate.Per:
		e.renew(0, now)
	case age < e.span || windowed && named:
	case windowed:
		e.renew(e.owed(now), e.from)
	case named:
		e.n, e.from = e.settled+e.owed(now), now
	default:
		e.renew(e.owed(now), now)
	}
}

// owed returns how many permits of an entry are neither charged nor regained by the passage of
// time.
func (e *ledgerEntry) owed(now time.Time) int64 {
	n, age := e.n-e.settled, now.Sub(e.from)
	switch windowed := e.quota.Algorithm.Windowed(); {
	case windowed && age >= e.quota.Rate.Per:
		return 0
	case windowed || age < e.span:
		return n
	}
	return min(n, e.sent-e.settled+e.lacks(now))
}

// settlement returns the Charge of an entry.
func (e *ledgerEntry) settlement(key ledgerKey, now time.Time) settlement {
	e.age(now)
	e.sent = e.n
	return settlement{key: key, number: e.number, n: e.n, op: Op{
		Quota: e.quota, Name: key.name, Key: key.key,
		Request: Request{Kind: Charge, N: e.n, Mark: e.number, Within: max(now.Sub(e.from), 0)},
	}}
}

// chargeFor returns the Charge that is owed for op's key, and whether there is one.
func (l *ledger) chargeFor(op *Op, now time.Time) (c settlement, ok bool) {
	s := l.lock(op.Name, op.Key)
	defer s.mu.Unlock()
	key := ledgerKey{op.Name, op.Key}
	if e := s.keys[key]; e != nil && e.owed(now) > 0 {
		return e.settlement(key, now), true
	}
	return c, false
}

// some returns the keys of up to n entries with owed permits. It drops permits that were
// regained by the passage of time, and entries that have owed nothing for long.
func (l *ledger) some(n int, now time.Time) (ops []Op) {
	first := int(l.turn.Add(1)) // another shard each time
	for i := range l.shards {
		s := &l.shards[(first+i)%ledgerShards]
		s.mu.Lock()
		for key, e := range s.keys {
			switch owed := e.owed(now); {
			case owed > 0 && len(ops) < n:
				ops = append(ops, Op{Quota: e.quota, Name: key.name, Key: key.key})
			case owed > 0:
			case e.n > e.settled:
				l.closeEntry(e)
			case now.Sub(e.from) > ledgerMemory:
				delete(s.keys, key)
				l.held.Add(-1)
			}
		}
		s.mu.Unlock()
	}
	return ops
}

// record records the outcome of a settlement in a call that began at call. An error of that ask
// alone is final. After any other error it is unknown whether the ask was executed.
func (l *ledger) record(c *settlement, call time.Time, res Result, err error) {
	if err != nil && !concernsOp(err) {
		return
	}
	s := l.lock(c.key.name, c.key.key)
	defer s.mu.Unlock()
	e := s.keys[c.key]
	if e == nil || e.number != c.number || e.settled >= c.n {
		return
	}
	n := c.n - e.settled
	e.settled = c.n
	if err == nil {
		l.settled.Add(uint64(n))
		e.charged = res.Return()
		e.charged.Keep = e.charged.N // so that no Return is the last
		if len(e.acks) == maxAcks {
			e.acks = slices.Delete(e.acks, 0, 1)
		}
		e.acks = append(e.acks, ledgerAck{answered: time.Now(), began: call, n: n})
	} else {
		l.dropped.Add(uint64(n))
	}
	switch {
	case e.n == e.settled:
		l.closeEntry(e)
	case e.sent == c.n: // the next ones get a number of their own
		e.renew(e.n-c.n, e.from)
	}
}

// reduce cancels up to n permits owed for a key, unless a Charge may have named them, and
// returns the number cancelled. The caller holds the lock.
func (l *ledger) reduce(s *ledgerShard, op *Op, n int64) int64 {
	e := s.keys[ledgerKey{op.Name, op.Key}]
	if e == nil || e.n == e.settled {
		return 0
	}
	back := min(n, e.n-e.sent)
	if e.n -= back; e.n == e.settled {
		l.closeEntry(e)
	}
	return back
}

// giveBack returns the Return of up to n charged permits. Its N is 0 if none were charged. The
// caller holds the lock.
func (s *ledgerShard) giveBack(op *Op, n int64) (ask Request) {
	if e := s.keys[ledgerKey{op.Name, op.Key}]; e != nil {
		ask = e.charged
		ask.N = min(n, e.charged.N)
		e.charged.N -= ask.N
	}
	return ask
}

// unknown returns how many locally granted permits the primary may not have known of when it
// answered a call that began at call. The caller holds the lock.
func (s *ledgerShard) unknown(op *Op, call time.Time) int64 {
	e := s.keys[ledgerKey{op.Name, op.Key}]
	if e == nil {
		return 0
	}
	n := e.n - e.settled
	for _, ack := range e.acks {
		if ack.answered.After(call) && !ack.began.Equal(call) {
			n += ack.n
		}
	}
	return n
}
