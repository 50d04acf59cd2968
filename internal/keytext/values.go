package keytext

import "github.com/hotparam/hotparam/rules"

// A parameter that a request repeats makes a key of each of its values, so that a second value
// hides nothing. The number of keys is bounded: the request is counted once for all keys beyond
// the bound, on the key of [base.AppendMore].

// pick puts into indices the n parameters that make keys: those whose source and name are among
// names or, with empty names, all that are not hidden. A parameter that is repeated with the same
// value is picked once. If there are more than [rules.MaxKeys], pick takes the first value of each name,
// as long as there is room in indices, then the second of each up to MaxKeys, and so on, each time
// in canonical order. So no parameter is left out for another's values. The result is in canonical
// order. The parameters must be sorted.
func (p *Params) pick(indices []int32, names []rules.Param, secrets *rules.Secrets) (n, hidden int, more bool) {
	for i := range p.list {
		switch {
		case !p.makesKey(i, names, secrets):
			if len(names) == 0 && p.list[i].marks&named == 0 {
				hidden++
			}
		case p.isRepeated(i):
		case n == rules.MaxKeys:
			more = true
		default:
			indices[n] = int32(i)
			n++
		}
	}
	if more {
		n, more = p.pickFirstValues(indices, names, secrets)
	}
	return n, hidden, more
}

// makesKey reports whether parameter i is one that the rule makes keys of.
func (p *Params) makesKey(i int, names []rules.Param, secrets *rules.Secrets) bool {
	q := &p.list[i]
	if len(names) > 0 {
		return q.among(names)
	}
	return q.marks&named == 0 && (q.marks&redacted != 0 || !secrets.Hides(q.name())) // a redacted value is no secret
}

// isRepeated reports whether parameter i equals the one before it.
func (p *Params) isRepeated(i int) bool { return i > 0 && p.list[i].equal(&p.list[i-1]) }

func (q *param) equal(r *param) bool { return q.text == r.text && q.eq == r.eq && q.source == r.source }

// RepeatsNames reports whether some name comes more than once, whatever the sources and values.
// Only then can a request have several keys of the same names. The parameters must be sorted.
func (p *Params) RepeatsNames() bool {
	for i := 1; i < len(p.list); i++ {
		q, r := &p.list[i-1], &p.list[i]
		if q.eq == r.eq && q.text[0] == r.text[0] && q.name() == r.name() { // most differ at the first byte
			return true
		}
	}
	return false
}

// pickFirstValues is pick for more than [rules.MaxKeys] parameters. It orders them by the number that
// each value has among the values of its name.
func (p *Params) pickFirstValues(indices []int32, names []rules.Param, secrets *rules.Secrets) (n int, more bool) {
	// each calls f with each parameter and its number, from 0.
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
	var counts [rules.MaxKeys]int // by number
	all := 0
	each(func(_, number int) {
		all++
		if number < rules.MaxKeys {
			counts[number]++
		}
	})
	room := max(rules.MaxKeys, min(counts[0], len(indices)))
	last := 0 // all values with a lower number are picked, and as many with this number as fit
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
		indices[n] = int32(i)
		n++
	})
	return n, n < all
}

// Pairings are the ways to take one value of each name that a request has.
type Pairings struct {
	// More reports whether there were more than [rules.MaxKeys].
	More bool

	n int
}

// pairing holds the values from which [Params.AppendPairing] makes its text.
type pairing struct {
	values []int32 // indices of the parameters, name by name
	ends   []int32 // end in values of each name
	picked []int32 // scratch space of AppendPairing
}

// Len returns the number of pairings.
func (s *Pairings) Len() int { return s.n }

// Pair finds the pairings of the parameters whose source and name are among names, at most
// [rules.MaxKeys]. They are the first in the order of names and of their values, with the last name's
// value changing fastest. They are valid until the next call of Pair or Reset. The parameters
// must be sorted.
func (p *Params) Pair(names []rules.Param) (s Pairings) {
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
			if len(pairing.values)-start > rules.MaxKeys { // no pairing has a value with a higher number
				break
			}
		}
		switch n := len(pairing.values) - start; {
		case n == 0:
			continue
		case total == 0:
			total = n
		default:
			total = min(total*n, rules.MaxKeys+1)
		}
		pairing.ends = append(pairing.ends, int32(len(pairing.values)))
	}
	return Pairings{n: min(total, rules.MaxKeys), More: total > rules.MaxKeys}
}

// AppendPairing appends "name=value&…" of the pairing with this number, which must be below
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
		index := pairing.values[int(start)+number%n]
		number /= n
		j := len(pairing.picked)
		for pairing.picked = append(pairing.picked, index); j > 0 && pairing.picked[j-1] > index; j-- {
			pairing.picked[j] = pairing.picked[j-1]
		}
		pairing.picked[j] = index
	}
	for n, index := range pairing.picked {
		dst = p.appendNext(dst, int(index), n)
	}
	return dst
}
