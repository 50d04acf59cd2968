package window

// FetchMost is the most keys that one call of [Window.Fetch] reads ahead.
const FetchMost = 128

// ahead holds the working memory of Fetch.
type ahead struct {
	units [FetchMost]uint32
	sum   uint32 // sum of the values read, so that the compiler keeps the reads
}

// Fetch reads the memory that Add is about to touch for up to [FetchMost] hashes, if the window
// has at least from units. It reads the index for all hashes, then their entries, then the
// blocks of these. No pass branches on the values that it reads, and no read depends on another
// of its pass, so the processor waits for many cache misses at a time. With a branch on each
// entry, the processor speculated, and repeated the reads after each wrong guess.
func (w *Window) Fetch(hashes []uint64, from int) {
	if w.arena.used < max(from, 1) {
		return
	}
	hashes = hashes[:min(len(hashes), FetchMost)]
	units, sum := w.ahead.units[:len(hashes)], uint32(0)
	for i, hash := range hashes {
		units[i] = uint32(w.index.places[w.index.home(uint32(hash))])
	}
	if w.cells.all != nil {
		for _, hash := range hashes {
			sum += w.cells.cellOf(hash)[0]
		}
	}
	now := uint32(w.now)
	for i, entry := range units { // unit 0 is no entry, and can be read
		e := w.arena.unit(entry)
		hist := e.hist()
		if e[entryLast] == now { // compiled to a move, not to a branch
			hist = 0
		}
		units[i] = hist
	}
	for _, entry := range units {
		sum += w.arena.unit(entry)[blockStart]
	}
	w.ahead.sum = sum
}
