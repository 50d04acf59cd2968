package aggregator

// index finds a window's entries by hash: open addressing with linear probing,
// at most half full. A place holds the entry's number + 1; 0 is free.
type index struct {
	places []int32
	n      int
}

// find is the entry of a key, -1 if there is none.
func (w *window) find(hash uint64, text []byte) int32 {
	if w.index.n == 0 {
		return -1
	}
	mask := uint64(len(w.index.places) - 1)
	for at := hash & mask; w.index.places[at] != 0; at = (at + 1) & mask {
		i := w.index.places[at] - 1
		if e, _ := w.at(i); e.hash == hash && string(e.text) == string(text) {
			return i
		}
	}
	return -1
}

// link puts an entry into the index.
func (w *window) link(i int32) {
	if x := &w.index; 2*(x.n+1) > len(x.places) {
		old := x.places
		*x = index{places: make([]int32, max(256, 2*len(old)))}
		for _, place := range old {
			if place != 0 {
				w.put(place - 1)
			}
		}
	}
	w.put(i)
}

func (w *window) put(i int32) {
	e, _ := w.at(i)
	mask := uint64(len(w.index.places) - 1)
	at := e.hash & mask
	for w.index.places[at] != 0 {
		at = (at + 1) & mask
	}
	w.index.places[at] = i + 1
	w.index.n++
}

// unlink takes an entry out and moves those behind it up (Knuth, TAOCP 6.4,
// algorithm R), so that no grave marks are needed.
func (w *window) unlink(i int32) {
	places := w.index.places
	mask := uint64(len(places) - 1)
	e, _ := w.at(i)
	at := e.hash & mask
	for places[at] != i+1 {
		at = (at + 1) & mask
	}
	for next := (at + 1) & mask; places[next] != 0; next = (next + 1) & mask {
		other, _ := w.at(places[next] - 1)
		if home := other.hash & mask; (next-home)&mask >= (next-at)&mask {
			places[at] = places[next]
			at = next
		}
	}
	places[at] = 0
	w.index.n--
}
