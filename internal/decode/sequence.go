package decode

// reorder is how far behind the newest a packet may arrive and still be distinguished from a
// duplicate. It is more than an instance sends in the time that counts may be late.
const reorder = 4096

// sequence records the numbers that have arrived. While seen is nil, all from first to last
// have.
type sequence struct {
	first, last uint64
	seen        *seen
}

// isNew records a number. It reports false if the number was recorded before, or is too far
// behind the newest to be known.
func (s *sequence) isNew(seq uint64) bool {
	if s.seen == nil && seq == s.last+1 { // the usual case
		s.last++
		return true
	}
	seen := s.record()
	if seq > s.last {
		seen.skip(s.last+1, seq)
		s.last = seq
		return true
	}
	return s.last-seq < reorder && seen.mark(seq)
}

// record returns the record of the numbers that have arrived.
func (s *sequence) record() *seen {
	if s.seen == nil {
		s.seen = new(seen)
		for q := s.last; q >= s.first && s.last-q < reorder; q-- {
			s.seen.mark(q)
		}
	}
	return s.seen
}

// continueAt records the numbers up to seq. Later ones that have not arrived are missing.
func (s *sequence) continueAt(seq uint64) {
	seen := s.record()
	for q := seq; q > 0 && s.last-q < reorder; q-- {
		seen.mark(q)
	}
	s.first = 1
}

// seen records which of the newest numbers have arrived.
type seen [reorder / 64]uint64

// mark records a number. It reports false if it was recorded before.
func (s *seen) mark(seq uint64) bool {
	word, bit := &s[seq%reorder/64], uint64(1)<<(seq%64)
	was := *word
	*word |= bit
	return was&bit == 0
}

// skip records number to as seen, and the numbers from up to to-1 as not seen.
func (s *seen) skip(from, to uint64) {
	if to-from >= reorder {
		*s = seen{}
	}
	for q := from; q < to && to-from < reorder; q++ {
		s[q%reorder/64] &^= 1 << (q % 64)
	}
	s[to%reorder/64] |= 1 << (to % 64)
}
