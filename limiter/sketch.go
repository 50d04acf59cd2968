package limiter

import "github.com/hotparam/hotparam/internal/base"

// sketch keeps debts by the hashes of their keys. It is a count-min sketch (Cormode and
// Muthukrishnan, 2005) behind a Bloom filter.
//
// Each row of the sketch has one cell for a key, and a cell keeps the maximum of its keys'
// debts. So each of a key's cells has its debt or more, and the least of them is the nearest to
// it. A sum instead of the maximum, as used for counting, would add up the debts of other keys.
//
// Most new keys were never evicted, and owe nothing. The filter recognizes all but a small part
// of them. Without it a flood fills all cells, and every new key would begin with the debt of
// some other key. The hash is keyed, so no one can aim at a cell.
type sketch struct {
	rowMask       uint64
	cells         []int64 // sketchRows rows of cells
	keys          int
	recent, older filter
}

// A sketch takes two words of each generation of its filter, and one cell, for each key that
// the table has room for. With 8 keys evicted for each place the two generations together
// mistake 1 other key in 800 for an evicted one, and with 16 keys 1 in 400.
const (
	sketchRows    = 4
	cellNumbers   = debtDue // the numbers of a debt that a cell keeps: those before debtDue
	filterProbes  = 6
	filterWords   = 2 // for each place of the table
	filterKeys    = 8 // in one generation, for each place of the table
	wordsPerBlock = 8 // a line of the cache
)

// filter is one generation of a Bloom filter that keeps the bits of a key in one line of the
// cache (Putze, Sanders and Singler, 2007).
type filter struct {
	bits  []uint64
	keys  int
	until int64 // instant by which its keys have paid their debts
}

// newSketch returns a sketch for a table that has room for the given number of keys. The number
// must be a power of two and at least 4: a row has keys/4 cells and the filter keys/4 blocks, which
// are selected by masks.
func newSketch(keys int) *sketch {
	row := max(keys/sketchRows, 1)
	return &sketch{rowMask: uint64(row - 1), cells: make([]int64, sketchRows*row*cellNumbers), keys: keys}
}

// mixed returns the i-th hash derived from a key's hash (SplitMix64).
func mixed(hash uint64, i int) uint64 {
	return base.Mix64(hash + uint64(i)*0x9e3779b97f4a7c15)
}

// cell returns the numbers of a key's cell in a row.
func (s *sketch) cell(hash uint64, row int) []int64 {
	first := (uint64(row)*(s.rowMask+1) + mixed(hash, row+3)&s.rowMask) * cellNumbers
	return s.cells[first : first+cellNumbers]
}

// add adds the debt of a key at t.
func (s *sketch) add(hash uint64, owed *debt, t int64) {
	s.rotate(t)
	if f := &s.recent; !f.has(hash) {
		f.add(hash)
		f.keys++
	}
	s.recent.until = max(s.recent.until, owed[debtUntil])
	for row := range sketchRows {
		cell := s.cell(hash, row)
		paid := cell[debtUntil] <= t
		for i := range cell {
			if paid || owed[i] > cell[i] {
				cell[i] = owed[i]
			}
		}
	}
}

// upperBound returns an upper bound of a key's debt, if the key was evicted.
func (s *sketch) upperBound(hash uint64) (owed debt) {
	copy(owed[:], s.cell(hash, 0))
	for row := 1; row < sketchRows; row++ {
		for i, n := range s.cell(hash, row) {
			owed[i] = min(owed[i], n)
		}
	}
	return owed
}

// has reports whether a key was evicted, and may owe something at t.
func (s *sketch) has(hash uint64, t int64) bool {
	return s.recent.until > t && s.recent.has(hash) || s.older.until > t && s.older.has(hash)
}

// rotate makes a full generation the older one, once the keys of the generation that it
// replaces have paid their debts. Until then it takes more keys, and errs more often.
func (s *sketch) rotate(t int64) {
	f := &s.recent
	switch {
	case f.bits != nil && f.until > t && (f.keys < filterKeys*s.keys || s.older.until > t):
		return
	case f.until > t:
		s.recent, s.older = s.older, s.recent
	}
	if f.bits == nil {
		f.bits = make([]uint64, filterWords*s.keys)
	}
	clear(f.bits)
	f.keys, f.until = 0, 0
}

func (f *filter) block(hash uint64) []uint64 {
	blocks := uint64(len(f.bits) / wordsPerBlock)
	first := mixed(hash, 1) & (blocks - 1) * wordsPerBlock
	return f.bits[first : first+wordsPerBlock]
}

func (f *filter) add(hash uint64) {
	block, bits := f.block(hash), mixed(hash, 2)
	for range filterProbes {
		block[bits>>6%wordsPerBlock] |= 1 << (bits & 63)
		bits >>= 9
	}
}

func (f *filter) has(hash uint64) bool {
	block, bits := f.block(hash), mixed(hash, 2)
	for range filterProbes {
		if block[bits>>6%wordsPerBlock]&(1<<(bits&63)) == 0 {
			return false
		}
		bits >>= 9
	}
	return true
}
