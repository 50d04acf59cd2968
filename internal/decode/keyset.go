package decode

import (
	"math/bits"
	"sync"
)

// keySets record which keys some senders have counted in a second: those that send the most
// lines. A sender that finds none free is treated as one that has used up its own.
type keySets struct {
	mu   sync.Mutex
	sets [maxKeySets]keySet
}

// maxKeySets bounds their memory, which is at most that times two or four bytes a key: 4 MB
// by default.
const maxKeySets = 8

// keySet is what one sender has counted. A sample of its keys, by hash, estimates how many
// there are, until that is a quarter of the cap. From then on new keys are counted, up to
// half of the cap. So keys that are already known are not affected when there are too many,
// and a sender of many lines of few keys costs next to nothing.
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
	if most /= 2; set.n+len(counts) > most { // maybe too many: what is refused is not recorded
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

// find returns the set of a sender in a second, or nil if others use all.
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

// place returns where the bits of a key are.
func (f filter) place(hash uint64) (word *uint64, bits uint64) {
	return &f[int(hash>>16)&(len(f)-1)], 1<<(hash>>54&63) | 1<<(hash>>48&63) | 1<<(hash>>42&63)
}

// mix returns the hash of a key and its rule.
func mix(c *Count) uint64 {
	hash := (c.Hash ^ uint64(c.Rule)) * 0x9e3779b97f4a7c15
	return hash ^ hash>>32
}

// tally is what a sender has counted in a second.
type tally struct {
	mu     sync.Mutex
	second int64 // Unix
	counts int64
	lines  int // while they are few their keys need no look
}
