package limiter

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// ledger holds what a [Failover] granted locally and has not charged to its primary yet.
//
// A key has one entry, whose permits go to the primary in one Charge. If that had no answer,
// it may have been executed all the same. So it is sent again under the same number and with
// the same permits or more, and the primary charges only those beyond the earlier ones.
type ledger struct {
	seed   maphash.Seed
	shards [ledgerShards]ledgerShard
	held   atomic.Int64  // entries
	owing  atomic.Int64  // those of which something is owed
	turn   atomic.Uint32 // the shard to begin with
	filled chan struct{} // wakes Run; holds one

	settled, dropped atomic.Uint64 // permits
}

const (
	ledgerShards = 16 // a power of two
	// maxLedger is the number of keys in a ledger. What is granted of others is not charged.
	maxLedger = 1 << 14
	// ledgerSpan is the time within which grants of a bucket are charged as if made at the
	// same instant. After it, the entry continues with what the bucket has not earned since.
	ledgerSpan = time.Second
	// ledgerMemory is for how long the primary knows the number of a Charge at least.
	ledgerMemory = 50 * time.Second
	// maxUnsent bounds what one Charge names, far from any overflow.
	maxUnsent = 1 << 40
)

type ledgerShard struct {
	mu   sync.Mutex
	keys map[ledgerKey]*ledgerEntry
}

type ledgerKey struct{ name, key string }

// ledgerEntry is what is owed of one key.
type ledgerEntry struct {
	quota   *rules.Quota // the latest
	number  int64        // of its charge
	n       int64        // permits that were granted under that number
	sent    int64        // the most of them that a Charge named
	settled int64        // those that are known to be charged
	from    time.Time    // when the first of them was granted
	charged Ask          // a Return of what was charged last
	acks    []ledgerAck  // the last charges
}

// ledgerAck is a charge that the primary confirmed.
type ledgerAck struct {
	at   time.Time // when the answer came
	call time.Time // when the call began that brought it
	n    int64
}

// maxAcks is how many charges of a key are remembered.
const maxAcks = 8

// settlement is a Charge of what is owed of a key.
type settlement struct {
	key    ledgerKey
	number int64
	n      int64
	op     Op
}

// charges numbers the entries of all ledgers in the process, so that those of a key that
// several ledgers charge to one primary differ.
var charges atomic.Int64

func newLedger() *ledger {
	l := &ledger{seed: maphash.MakeSeed(), filled: make(chan struct{}, 1)}
	for i := range l.shards {
		l.shards[i].keys = make(map[ledgerKey]*ledgerEntry)
	}
	return l
}

// any reports whether anything is owed.
func (l *ledger) any() bool { return l.owing.Load() > 0 }

// lock returns the locked shard of a key. Who decides on a key locally holds the lock
// meanwhile, so that an answer of the primary finds either all of a local grant or nothing.
func (l *ledger) lock(name, key string) *ledgerShard {
	s := l.shard(name, key)
	s.mu.Lock()
	return s
}

func (l *ledger) shard(name, key string) *ledgerShard {
	h := maphash.String(l.seed, key) ^ bits.RotateLeft64(maphash.String(l.seed, name), 32)
	return &l.shards[h%ledgerShards]
}

// lockAll returns the locked shards of the keys of ops, each once.
func (l *ledger) lockAll(ops []Op) (locked []*ledgerShard) {
	var wanted [ledgerShards]bool
	for i := range ops {
		for k, s := 0, l.shard(ops[i].Name, ops[i].Key); k < ledgerShards; k++ {
			wanted[k] = wanted[k] || s == &l.shards[k]
		}
	}
	for k := range wanted { // all lock in this order
		if wanted[k] {
			l.shards[k].mu.Lock()
			locked = append(locked, &l.shards[k])
		}
	}
	return locked
}

// add records that n permits were granted locally. The caller holds the lock.
func (l *ledger) add(s *ledgerShard, op *Op, n int64) {
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
	e.quota = op.Quota
	if e.n == e.settled {
		e.renew(0, now)
		if l.owing.Add(1) == 1 {
			l.wake()
		}
	}
	e.age(now)
	e.n = min(e.n+n, maxUnsent)
}

// renew continues an entry with n permits, under another number.
func (e *ledgerEntry) renew(n int64, from time.Time) {
	*e = ledgerEntry{quota: e.quota, charged: e.charged, acks: e.acks, number: charges.Add(1), n: n, from: from}
}

// close ends what is owed of an entry. It stays for as long as permits may be returned that were
// charged.
func (l *ledger) close(e *ledgerEntry) {
	l.owing.Add(-1)
	e.renew(0, time.Now())
}

// wake tells Run that there is something to charge.
func (l *ledger) wake() {
	select {
	case l.filled <- struct{}{}:
	default:
	}
}

// age continues an old entry with what is still missing of it, unless a Charge of it may have
// been executed. A window keeps its permits at the time of the first, and gets them back a
// little early rather than late.
func (e *ledgerEntry) age(now time.Time) {
	age := now.Sub(e.from)
	if age < ledgerSpan || e.sent > e.settled && age < ledgerMemory {
		return
	}
	left := e.owed(now)
	if e.quota.Algorithm.Windowed() && left > 0 {
		now = e.from
	}
	e.renew(left, now)
}

// owed returns how many permits of an entry are neither charged nor back by themselves.
func (e *ledgerEntry) owed(now time.Time) int64 {
	n, age := e.n-e.settled, now.Sub(e.from)
	if e.quota.Algorithm.Windowed() {
		if age >= e.quota.Rate.Per {
			return 0
		}
		return n
	}
	earned := float64(age) * float64(e.quota.Rate.N) / float64(e.quota.Rate.Per)
	return n - int64(min(earned, float64(n)))
}

// settlement returns the Charge of an entry.
func (e *ledgerEntry) settlement(key ledgerKey, now time.Time) settlement {
	e.age(now)
	e.sent = e.n
	return settlement{key: key, number: e.number, n: e.n, op: Op{
		Quota: e.quota, Name: key.name, Key: key.key,
		Ask: Ask{Kind: Charge, N: e.n, Mark: e.number, Within: max(now.Sub(e.from), 0)},
	}}
}

// of returns the Charge of what is owed of op's key.
func (l *ledger) of(op *Op, now time.Time) (c settlement, ok bool) {
	s := l.lock(op.Name, op.Key)
	defer s.mu.Unlock()
	key := ledgerKey{op.Name, op.Key}
	if e := s.keys[key]; e != nil && e.owed(now) > 0 {
		return e.settlement(key, now), true
	}
	return c, false
}

// some returns the keys of up to n entries of which something is owed. It drops what has come
// back by itself, and entries that nothing was owed of for long.
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
				l.close(e)
			case now.Sub(e.from) > ledgerMemory:
				delete(s.keys, key)
				l.held.Add(-1)
			}
		}
		s.mu.Unlock()
	}
	return ops
}

// record records what came of a settlement in a call that began at call. An error of that ask
// alone is final, and any other leaves open whether it was executed.
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
		e.acks = append(e.acks, ledgerAck{at: time.Now(), call: call, n: n})
	} else {
		l.dropped.Add(uint64(n))
	}
	switch {
	case e.n == e.settled:
		l.close(e)
	case e.sent == c.n: // the next ones get a number of their own
		e.renew(e.n-c.n, e.from)
	}
}

// reduce takes up to n permits off what is owed of a key, unless a Charge may have named them,
// and returns how many. The caller holds the lock.
func (l *ledger) reduce(s *ledgerShard, op *Op, n int64) int64 {
	e := s.keys[ledgerKey{op.Name, op.Key}]
	if e == nil || e.n == e.settled {
		return 0
	}
	back := min(n, e.n-e.sent)
	if e.n -= back; e.n == e.settled {
		l.close(e)
	}
	return back
}

// giveBack returns the Return of up to n permits that were charged; its N is 0 if none were.
// The caller holds the lock.
func (s *ledgerShard) giveBack(op *Op, n int64) (ask Ask) {
	if e := s.keys[ledgerKey{op.Name, op.Key}]; e != nil {
		ask = e.charged
		ask.N = min(n, e.charged.N)
		e.charged.N -= ask.N
	}
	return ask
}

// unknown returns how many permits were granted locally that the primary may not have known of
// when it answered a call that began at call. The caller holds the lock.
func (s *ledgerShard) unknown(op *Op, call time.Time) int64 {
	e := s.keys[ledgerKey{op.Name, op.Key}]
	if e == nil {
		return 0
	}
	n := e.n - e.settled
	for _, ack := range e.acks {
		if ack.at.After(call) && !ack.call.Equal(call) {
			n += ack.n
		}
	}
	return n
}
