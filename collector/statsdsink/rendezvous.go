package statsdsink

// rendezvous picks one of several nodes for a key by the highest random weight
// (Thaler and Ravishankar, 1996): when a node is added or removed, only its own keys
// move. Unlike a ring of hashes, it needs no table and divides the keys evenly. Each pick
// costs time proportional to the number of nodes, which is small.
type rendezvous struct {
	seeds []uint64 // seed of each node
}

func newRendezvous(nodes []string) rendezvous {
	seeds := make([]uint64, len(nodes))
	for i, node := range nodes {
		seeds[i] = mix(fnv1a(node))
	}
	return rendezvous{seeds}
}

// pick returns the index of the key's node.
func (r rendezvous) pick(key []byte) int {
	hash := fnv1a(key)
	best, highest := 0, uint64(0)
	for i, seed := range r.seeds {
		w := mix(hash ^ seed)
		// Two nodes with equal seeds would have equal weights: the probability is 2⁻⁶⁴.
		if w > highest {
			best, highest = i, w
		}
	}
	return best
}

// fnv1a returns the 64-bit FNV-1a hash, which is the same in every process and language.
func fnv1a[T string | []byte](s T) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return h
}

// mix applies the finalizer of MurmurHash3: each bit of x affects each bit of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
