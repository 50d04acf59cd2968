package rules

// A parameter that a request repeats makes a key of each of its values, so that a
// second one hides nothing. How many keys that can be is bounded: what is beyond is
// counted once, on the key of [base.AppendMore].

// MaxKeys is how many keys a rule by each parameter or by names makes of one request at
// most. A rule by combinations makes [maxCombinationKeys], but of second values of names
// no more than this.
const MaxKeys = 8

// Singles are the parameters of a request that make a key each.
type Singles struct {
	// Hidden is how many parameters were left out since they look secret.
	Hidden int
	// More reports whether there were more than [MaxKeys].
	More bool

	at [MaxKeys]int32 // in the Params
	n  int
}

// Len returns how many there are.
func (s *Singles) Len() int { return s.n }

// Singles picks the parameters that make a key each: of those whose source and name are
// among names, or, where names is empty, of all but those that secrets hide. One that
// is repeated as it is comes once. Of more than [MaxKeys] these are the first value of
// each name, then the second of each, and so on, each time in canonical order, so that
// no parameter is left out for the values of another. They are in canonical order. The
// parameters must be sorted.
func (p *Params) Singles(names []Param, secrets *Secrets) (s Singles) {
	s.n, s.Hidden, s.More = p.pick(s.at[:], names, secrets)
	return s
}

// pick is [Params.Singles] for the n parameters that it puts into at, where the first
// values of names may be as many as at has room for.
func (p *Params) pick(at []int32, names []Param, secrets *Secrets) (n, hidden int, more bool) {
	for i := range p.list {
		switch {
		case !p.makesKey(i, names, secrets):
			if len(names) == 0 && p.list[i].marks&named == 0 {
				hidden++
			}
		case p.isRepeated(i):
		case n == MaxKeys:
			more = true
		default:
			at[n] = int32(i)
			n++
		}
	}
	if more {
		n, more = p.pickFirstValues(at, names, secrets)
	}
	return n, hidden, more
}

// makesKey reports whether parameter i is one that a rule asks for.
func (p *Params) makesKey(i int, names []Param, secrets *Secrets) bool {
	q := &p.list[i]
	if len(names) > 0 {
		return q.among(names)
	}
	return q.marks&named == 0 && !q.isHidden(secrets)
}

// isRepeated reports whether parameter i is the one before it once more.
func (p *Params) isRepeated(i int) bool { return i > 0 && p.list[i].equal(&p.list[i-1]) }

func (q *param) equal(r *param) bool { return q.text == r.text && q.eq == r.eq && q.source == r.source }

// RepeatsNames reports whether some name comes more than once, whatever the sources and
// values: only then can a request have several keys of the same names. The parameters
// must be sorted.
func (p *Params) RepeatsNames() bool {
	for i := 1; i < len(p.list); i++ {
		q, r := &p.list[i-1], &p.list[i]
		if q.eq == r.eq && q.text[0] == r.text[0] && q.name() == r.name() { // most differ at the first byte
			return true
		}
	}
	return false
}

// pickFirstValues is pick where there are more than [MaxKeys]: it orders them by the number
// that each value has among those of its name.
func (p *Params) pickFirstValues(at []int32, names []Param, secrets *Secrets) (n int, more bool) {
	// each calls f with each parameter and that number, from 0.
	each := func(f func(i, number int)) {
		name, number := "", -1
		for i := range p.list {
			if !p.makesKey(i, names, secrets) || p.isRepeated(i) {
				continue
			}
			if q := p.list[i].name(); number < 0 || q != name {
				name, number = q, 0
			} else {
				number++
			}
			f(i, number)
		}
	}
	var counts [MaxKeys]int // by number
	all := 0
	each(func(_, number int) {
		all++
		if number < MaxKeys {
			counts[number]++
		}
	})
	room := max(MaxKeys, min(counts[0], len(at)))
	last := 0 // all of a lower number than last are picked, and with it as many as there is room for
	for ; counts[last] < room; last++ {
		room -= counts[last]
	}
	each(func(i, number int) {
		if number > last || number == last && room == 0 {
			return
		}
		if number == last {
			room--
		}
		at[n] = int32(i)
		n++
	})
	return n, n < all
}

// AppendSingle appends "[source:]name=value" of one of the parameters, by its number
// below [Singles.Len].
func (p *Params) AppendSingle(dst []byte, s *Singles, number int) []byte {
	return appendNext(dst, &p.list[s.at[number]], 0)
}

// Pairings are the ways to take one value of each of the names that a request has.
type Pairings struct {
	// More reports whether there were more than [MaxKeys].
	More bool

	n int
}

// pairing is what [Params.AppendPairing] needs to know.
type pairing struct {
	values []int32 // the parameters that are values of a name, name by name
	ends   []int32 // where those of each name end
	picked []int32 // kept for its room
}

// Len returns how many there are.
func (s *Pairings) Len() int { return s.n }

// Pair finds the pairings of the values that the parameters have whose source and name
// are among names, at most [MaxKeys]: the first by the order of names and that of their
// values, the last name's changing first. They are valid until the next call of Pair or
// Reset. The parameters must be sorted.
func (p *Params) Pair(names []Param) (s Pairings) {
	if p.pairing == nil { // few requests need one
		p.pairing = new(pairing)
	}
	pairing := p.pairing
	pairing.values, pairing.ends = pairing.values[:0], pairing.ends[:0]
	total := 0
	for i := range names {
		start := len(pairing.values)
		for j := range p.list {
			q := &p.list[j]
			if !q.among(names[i:i+1]) || len(pairing.values) > start && q.equal(&p.list[pairing.values[len(pairing.values)-1]]) {
				continue
			}
			pairing.values = append(pairing.values, int32(j))
			if len(pairing.values)-start > MaxKeys { // no pairing has one of more
				break
			}
		}
		switch n := len(pairing.values) - start; {
		case n == 0:
			continue
		case total == 0:
			total = n
		default:
			total = min(total*n, MaxKeys+1)
		}
		pairing.ends = append(pairing.ends, int32(len(pairing.values)))
	}
	return Pairings{n: min(total, MaxKeys), More: total > MaxKeys}
}

// AppendPairing appends "name=value&…" of one of the pairings, by its number below
// [Pairings.Len], in canonical order.
func (p *Params) AppendPairing(dst []byte, number int) []byte {
	pairing := p.pairing
	pairing.picked = pairing.picked[:0]
	for i := len(pairing.ends) - 1; i >= 0; i-- {
		start := int32(0)
		if i > 0 {
			start = pairing.ends[i-1]
		}
		n := int(pairing.ends[i] - start)
		at := pairing.values[int(start)+number%n]
		number /= n
		j := len(pairing.picked)
		for pairing.picked = append(pairing.picked, at); j > 0 && pairing.picked[j-1] > at; j-- {
			pairing.picked[j] = pairing.picked[j-1]
		}
		pairing.picked[j] = at
	}
	for n, at := range pairing.picked {
		dst = appendNext(dst, &p.list[at], n)
	}
	return dst
}
