package aggregator

import (
	"errors"
	"math"
	"math/bits"
	"net/netip"
	"sync"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// Caps bound what one sender can do: an instance, or an address whose packets name none.
// They are far above what any sender of ours does. What is over them is dropped, packet by
// packet, and counted; it is no loss, so no key's high count rises by it. Zero: no bound.
type Caps struct {
	// Counts is how much one sender may count in a second, of all keys; of rules that
	// count bytes, in KiB. What it says that it lost or dropped may be a minute's worth.
	Counts int64
	// Keys is how many different keys it may count in a second.
	Keys int
	// Names is how many instances are followed at a time. NewNames is how many of them
	// may come from one address within a minute.
	Names, NewNames int
}

// DefaultCaps are those of the daemon.
var DefaultCaps = Caps{Counts: 100_000_000, Keys: 250_000, Names: 10_000, NewNames: 1_000}

// Bounds of a Caps' fields.
const (
	MaxCapCounts = 1 << 50
	MaxCapKeys   = 1 << 24
)

func (c *Caps) validate() error {
	if c.Counts < 0 || c.Counts > MaxCapCounts || c.Keys < 0 || c.Keys > MaxCapKeys || c.Names < 0 || c.Names > maxSenders || c.NewNames < 0 {
		return errors.New("Trust.Caps: out of bounds")
	}
	return nil
}

// claims is the most that a sender may say is missing; 0: no bound.
func (c *Caps) claims() uint64 { return uint64(c.Counts) * 60 }

// tally is what a sender has counted in a second.
type tally struct {
	mu     sync.Mutex
	second int64 // Unix
	counts int64
	lines  int // while they are few their keys need no look
}

// excess returns which cap a packet is over: refused is false if none. What is over one is
// not added.
func (d *Decoder) excess(t *tally, counts []Count, sum int64, now time.Time) (why Refusal, refused bool) {
	caps := &d.trust.Caps
	if d.inBytes {
		sum = d.weight(counts)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := now.Unix(); at > t.second || at < t.second-1 { // readers are not all at the same time
		t.second, t.counts, t.lines = at, 0, 0
	}
	if caps.Counts > 0 && sum > caps.Counts-t.counts {
		return RefusedCounts, true
	}
	// A quarter of the lines may have any keys: who sends no more needs no look.
	if caps.Keys > 0 && t.lines+len(counts) > caps.Keys/4 {
		if !d.trust.sets.take(t, t.second, caps.Keys, counts) {
			return RefusedKeys, true
		}
	}
	t.counts += sum
	t.lines += len(counts)
	return 0, false
}

// isOver reports whether a packet is over a cap of its sender: then none of its counts are
// taken. They have come, so the next packet does not say that they are missing.
func (d *Decoder) isOver(m *wire.Meta, from *sender, when time.Time, sum int64, h Handler) bool {
	var t *tally
	if from != nil {
		t = &from.tally
	} else {
		t = d.tallies.at(d.source(), d.now)
	}
	why, refused := d.excess(t, d.counts, sum, d.now)
	if !refused {
		return false
	}
	instance := ""
	if from != nil {
		instance = from.name
	}
	d.refuse(why, d.source(), instance)
	if from == nil || !m.Sums.Told {
		return true
	}
	booked := int64(0)
	for i := range d.entries {
		booked += d.entries[i].N
	}
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	if from.incarnation == m.Incarnation {
		from.accounts.finish(m, when, uint64(booked), uint64(sum-booked), h)
	}
	return true
}

// weight is what counts add up to, those of bytes in KiB.
func (d *Decoder) weight(counts []Count) (sum int64) {
	for i := range counts {
		if n := counts[i].N; d.bytes[counts[i].Rule] {
			sum += n >> 10
		} else {
			sum += n
		}
	}
	return sum
}

// keySets know which keys some senders have counted in a second: those that send the most
// lines. One that finds none free is as one that has used it up.
type keySets struct {
	mu   sync.Mutex
	sets [maxKeySets]keySet
}

// maxKeySets times two bytes a key, or four, is what they take at most: 4 MB by default.
const maxKeySets = 8

// keySet is what one sender has counted. Of its keys a part, by hash, says how many there
// are, until that is a quarter of what may be. From then on those that are new are counted,
// up to half of what may be: so what goes on is not concerned when there are too many, and
// a sender of many lines of few keys costs next to nothing.
type keySet struct {
	owner    *tally
	second   int64
	part     filter
	of       filter
	n        int // keys in part, and then in of
	counting bool
}

// inPart is of how many keys one is in the part.
const inPart = 16

// take adds the keys of a packet of a sender that may have so many; false if there are more
// new ones.
func (s *keySets) take(t *tally, second int64, most int, counts []Count) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.find(t, second, most/4)
	if set == nil {
		return false
	}
	if !set.counting {
		for i := range counts {
			if hash := mix(&counts[i]); hash>>60 == 0 && set.part.add(hash) {
				set.n++
			}
		}
		if set.n*inPart >= most/4 {
			set.counting, set.n = true, 0
			set.of.begin(most / 2)
		}
		return true
	}
	if most /= 2; set.n+len(counts) > most { // maybe too many: nothing of what is refused is noted
		fresh := 0
		for i := range counts {
			if !set.of.has(mix(&counts[i])) {
				fresh++
			}
		}
		if set.n+fresh > most {
			return false
		}
	}
	for i := range counts {
		if set.of.add(mix(&counts[i])) {
			set.n++
		}
	}
	return true
}

// find is the set of a sender in a second; nil if others have them all.
func (s *keySets) find(t *tally, second int64, most int) *keySet {
	var free *keySet
	for i := range s.sets {
		set := &s.sets[i]
		if set.owner == t && set.second == second {
			return set
		}
		if free == nil && (set.owner == nil || set.owner == t || second-set.second > 1 || set.second-second > 1) {
			free = set
		}
	}
	if free == nil {
		return nil
	}
	free.part.begin(most / inPart)
	free.owner, free.second, free.n, free.counting = t, second, 0, false
	return free
}

// filter is a Bloom filter with sixteen bits for each key that it may hold, or more, and
// three for each that it holds, which are in one word: so a key costs one look at memory,
// and of new keys one in a hundred or so is taken for one that was there.
type filter []uint64

// begin makes it one for so many keys that has none.
func (f *filter) begin(keys int) {
	if size := 1 << bits.Len(uint(keys/4)); len(*f) != size {
		*f = make([]uint64, size)
	}
	clear(*f)
}

// add adds a key; false if it was there.
func (f filter) add(hash uint64) bool {
	word, bits := f.place(hash)
	if *word&bits == bits {
		return false
	}
	*word |= bits
	return true
}

func (f filter) has(hash uint64) bool {
	word, bits := f.place(hash)
	return *word&bits == bits
}

// place is where a key's bits are.
func (f filter) place(hash uint64) (word *uint64, bits uint64) {
	return &f[int(hash>>16)&(len(f)-1)], 1<<(hash>>54&63) | 1<<(hash>>48&63) | 1<<(hash>>42&63)
}

// mix is the hash of a key and its rule.
func mix(c *Count) uint64 {
	hash := (c.Hash ^ uint64(c.Rule)) * 0x9e3779b97f4a7c15
	return hash ^ hash>>32
}

// maxPlain bounds the addresses whose packets name no instance; others share a tally.
const maxPlain = 4096

// plainTallies are those of packets that name no instance, by address.
type plainTallies struct {
	of     map[netip.Addr]*tally
	last   *tally // of the address before, which mostly is the next one, too
	from   netip.Addr
	others tally
	swept  int64
}

// at is the tally of an address.
func (p *plainTallies) at(from netip.Addr, now time.Time) *tally {
	if p.last != nil && p.from == from {
		return p.last
	}
	if second := now.Unix(); second > p.swept+10 || second < p.swept {
		p.swept = second
		for a, t := range p.of {
			if t.second < second-10 {
				delete(p.of, a)
			}
		}
	}
	t := p.of[from]
	switch {
	case t != nil:
	case len(p.of) >= maxPlain:
		return &p.others
	default:
		if p.of == nil {
			p.of = make(map[netip.Addr]*tally)
		}
		t = new(tally)
		p.of[from] = t
	}
	p.from, p.last = from, t
	return t
}

// nameCaps bound how many instances there are, and how many new ones an address brings.
// Guarded by the senders' lock.
type nameCaps struct {
	total, fresh int
	minute       int64
	of           map[netip.Addr]int // new in this minute; no more than there are instances
}

func newNameCaps(c *Caps) *nameCaps {
	if c.Names == 0 && c.NewNames == 0 {
		return nil
	}
	n := &nameCaps{total: c.Names, fresh: c.NewNames}
	if n.total == 0 {
		n.total = maxSenders
	}
	if n.fresh == 0 {
		n.fresh = math.MaxInt
	}
	return n
}

// admit reports whether there is room for one more instance beside so many. Where packets
// have no address, on Unix sockets and in Kafka, who writes is known otherwise.
func (n *nameCaps) admit(from netip.Addr, known int, now time.Time) bool {
	if known >= n.total {
		return false
	}
	if !from.IsValid() {
		return true
	}
	if minute := now.Unix() / 60; minute != n.minute {
		n.minute = minute
		clear(n.of)
	}
	if n.of == nil {
		n.of = make(map[netip.Addr]int)
	}
	if n.of[from] >= n.fresh {
		return false
	}
	n.of[from]++
	return true
}

// claimed is how much a packet says is missing before it.
func claimed(a *accounts, m *wire.Meta) uint64 {
	if !a.sums.Told || m.Seq == a.seq+1 {
		return 0
	}
	return max(m.Sums.Booked, a.sums.Booked) - a.sums.Booked + max(m.Sums.Loose, a.sums.Loose) - a.sums.Loose
}

// byteRules are the rules that count bytes, by number; nil if there are none.
func byteRules(rules *hotparam.Rules) (all []bool, are bool) {
	all = make([]bool, len(rules.Rules))
	for i := range rules.Rules {
		all[i] = rules.Rules[i].Count == hotparam.Bytes
		are = are || all[i]
	}
	return all, are
}
