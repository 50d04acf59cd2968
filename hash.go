package hotparam

import "hash/maphash"

// seed keys Hash, so that nobody outside can choose parameters that collide.
var seed = maphash.MakeSeed()

// Hash returns the 64-bit keyed hash of a key's canonical bytes ([Key.String]),
// never 0. It differs from process to process and only filters: wherever it
// finds a key, the bytes decide.
func Hash(member []byte) uint64 {
	if h := maphash.Bytes(seed, member); h != 0 {
		return h
	}
	return 1
}
