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

// keySet holds the keys of one sender. Until a quarter of the cap is reached, a sample of the
// keys by hash estimates their number. From then on new keys are counted, up to half of the
// cap: a quarter is lines that are not checked (see exceededCap), and a quarter is sampled. So too
// many keys do not affect the keys that are already known, and a sender of many lines with few
// keys costs next to nothing.
type keySet struct {
	owner    *secondCounts
	second   int64
	sample   filter
	keys     filter
	n        int // number of keys in sample or, when counting, in keys
	counting bool
}

// One key in sampleInterval is sampled: those whose hash begins with sampleBits zeros. A filter
// places keys by other bits.
const (
	sampleBits     = 4
	sampleInterval = 1 << sampleBits
)

// addKeys adds the keys of a packet. It returns false if the sender, which may count limit keys,
// has more new ones.
func (s *keySets) addKeys(t *secondCounts, second int64, limit int, counts []Count) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.setFor(t, second, limit/4)
	if set == nil {
		return false
	}
	if !set.counting {
		for i := range counts {
			if hash := mix(&counts[i]); hash>>(64-sampleBits) == 0 && set.sample.add(hash) {
				set.n++
			}
		}
		if set.n*sampleInterval >= limit/4 {
			set.counting, set.n = true, 0
			set.keys.reset(limit / 2)
		}
		return true
	}
	if limit /= 2; set.n+len(counts) > limit { // maybe too many; a refused packet is not recorded
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

// setFor returns the set of a sender in a second, or nil if others use all sets.
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
	free.sample.reset(limit / sampleInterval)
	free.owner, free.second, free.n, free.counting = t, second, 0, false
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
