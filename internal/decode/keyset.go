package decode

import (
	"math/bits"
	"sync"
)

// keySets record the keys that some senders have counted in a second: up to maxKeySets senders
// that have sent more than a quarter of the cap in lines. A further sender is treated as one that
// has used up its keys.
type keySets struct {
	mu   sync.Mutex
	sets [maxKeySets]keySet
}

// maxKeySets bounds the memory of the sets. It is at most maxKeySets times two or four bytes a
// key: 4 MB by default.
const maxKeySets = 8

// keySet holds the keys of one sender that came after the first quarter of its lines, which are not
// checked (see exceededCap). So at most three quarters of the cap are counted here. When they are
// used up, packets with new keys are refused, and those with known keys pass.
type keySet struct {
	owner  *secondCounts
	second int64
	keys   filter
	n      int // number of keys
}

// addKeys adds the keys of a packet. It returns false if the sender, which may count limit keys,
// has more new ones.
func (s *keySets) addKeys(t *secondCounts, second int64, limit int, counts []Count) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit -= limit / 4
	set := s.setFor(t, second, limit)
	if set == nil {
		return false
	}
	if set.n+len(counts) > limit { // maybe too many; a refused packet is not recorded
		fresh := 0
		for i := range counts {
			if !set.keys.has(mix(&counts[i])) {
				fresh++
			}
		}
		if set.n+fresh > limit {
			return false
		}
	}
	for i := range counts {
		if set.keys.add(mix(&counts[i])) {
			set.n++
		}
	}
	return true
}

// setFor returns the set of a sender in a second, which has room for limit keys, or nil if others
// use all sets.
func (s *keySets) setFor(t *secondCounts, second int64, limit int) *keySet {
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
	free.keys.reset(limit)
	free.owner, free.second, free.n = t, second, 0
	return free
}

// filter is a Bloom filter with at least sixteen bits for each key that it may hold. Each key
// sets three bits, all in one word, so that it costs one memory access. About one in a hundred
// new keys is taken for a known one.
type filter []uint64

// reset clears f and sizes it for keys keys.
func (f *filter) reset(keys int) {
	if size := 1 << bits.Len(uint(keys/4)); len(*f) != size {
		*f = make([]uint64, size)
	}
	clear(*f)
}

// add adds a key. It returns false if the filter held it already.
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

// place returns the word and the bits of a key.
func (f filter) place(hash uint64) (word *uint64, bits uint64) {
	return &f[int(hash>>16)&(len(f)-1)], 1<<(hash>>54&63) | 1<<(hash>>48&63) | 1<<(hash>>42&63)
}

// mix returns the hash of a key and its rule.
func mix(c *Count) uint64 {
	hash := (c.Hash ^ uint64(c.Rule)) * 0x9e3779b97f4a7c15
	return hash ^ hash>>32
}

// secondCounts holds the counts of a sender in a second.
type secondCounts struct {
	mu     sync.Mutex
	second int64 // Unix
	counts int64
	lines  int // number of lines; keys are not checked while there are few
}
