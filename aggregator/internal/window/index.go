package window

// index finds entries by hash: open addressing with linear probing, at most two thirds full. A
// place holds the low half of the hash and the number of the entry; 0 means it is free. The low
// half also determines where the search starts, so probing, growing and removing touch no
// entry.
type index struct {
	places []uint64
	n      int
	limit  int // maximum number of entries
}

// indexShare is the memory that each entry adds to an index of maximum size.
const indexShare = 12

const firstPlaces = 64

func newIndex(limit int) index {
	return index{limit: limit, places: make([]uint64, min(firstPlaces, placesFor(limit)))}
}

func placesFor(entries int) int { return entries + entries/2 + 2 }

// home returns where the search for a hash begins: its low half as a fraction.
func (x *index) home(tag uint32) int { return int(uint64(tag) * uint64(len(x.places)) >> 32) }

// add adds an entry.
func (x *index) add(hash uint64, i uint32) {
	if placesFor(x.n+1) > len(x.places) {
		x.grow()
	}
	x.n++
	x.place(uint64(uint32(hash))<<32 | uint64(i))
}

func (x *index) place(p uint64) {
	i := x.home(uint32(p >> 32))
	for x.places[i] != 0 {
		if i++; i == len(x.places) {
			i = 0
		}
	}
	x.places[i] = p
}

func (x *index) grow() {
	old := x.places
	x.places = make([]uint64, min(2*len(old), placesFor(x.limit)))
	for _, p := range old {
		if p != 0 {
			x.place(p)
		}
	}
}

// remove removes an entry and moves the entries after it up (Knuth, TAOCP 6.4, algorithm R), so
// that no tombstones are needed.
func (x *index) remove(hash uint64, i uint32) {
	size := len(x.places)
	p := uint64(uint32(hash))<<32 | uint64(i)
	place := x.home(uint32(hash))
	for x.places[place] != p {
		if place++; place == size {
			place = 0
		}
	}
	for next := place; ; {
		if next++; next == size {
			next = 0
		}
		p := x.places[next]
		if p == 0 {
			break
		}
		if behind(x.home(uint32(p>>32)), next, size) >= behind(place, next, size) {
			x.places[place] = p
			place = next
		}
	}
	x.places[place] = 0
	x.n--
}

// behind returns the distance from one place to another, around the end.
func behind(from, to, size int) int {
	if to < from {
		to += size
	}
	return to - from
}
