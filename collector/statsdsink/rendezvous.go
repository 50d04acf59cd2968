package statsdsink

// rendezvous picks one of several nodes for a key by the highest random weight
// (Thaler and Ravishankar, 1996): a node that comes or goes moves its own keys
// and no others. Over a ring of hashes it needs no table, and the parts are even;
// that each look-up weighs all nodes is no matter for a handful of them.
type rendezvous struct {
	seeds []uint64 // of each node
}

func newRendezvous(nodes []string) rendezvous {
	seeds := make([]uint64, len(nodes))
	for i, node := range nodes {
		seeds[i] = mix(fnv1a(node))
	}
	return rendezvous{seeds}
}

// pick is the number of the key's node.
func (r rendezvous) pick(key []byte) int {
	hash := fnv1a(key)
	best, most := 0, uint64(0)
	for i, seed := range r.seeds {
		w := mix(hash ^ seed)
		// Of two nodes with the same seed, all weights are: it is a matter of 2⁻⁶⁴.
		if w > most {
			best, most = i, w
		}
	}
	return best
}

// fnv1a is the 64-bit FNV-1a hash: the same in every process, and in every
// language.
func fnv1a[T string | []byte](s T) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return h
}

// mix is the finalizer of MurmurHash3: each bit of x bears on each of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
