package statsdsink

// Values of Config.Spread, as in settings: which of several addresses get a key's counts.
const (
	// SpreadHash sends each key to one address, so that several aggregators share the
	// work. The choice depends on the key and the set of addresses, not on their order.
	// So it is the same on all instances if the addresses are spelled alike. All keys of
	// a rule that must be counted in one place ([rules.Rule.Whole]) go to one address.
	// When the n-th address is added, 1/n of the keys move to it, and no others move.
	//
	// If an aggregator fails, no other replaces it: the limits of its keys expire with its
	// entries, and it finds the keys again when it returns. Each aggregator publishes
	// under its own owner.
	SpreadHash = "hash"
	// SpreadAll sends every packet to every address. Each aggregator counts all keys;
	// one publishes, and a standby takes over when it fails. Each aggregator does the work
	// of a single one, and the traffic is multiplied by the number of addresses.
	SpreadAll = "all"
)

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
