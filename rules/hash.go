package rules

import "hash/maphash"

// seed keys Hash, so that no client can choose parameters that collide.
var seed = maphash.MakeSeed()

// Hash returns the 64-bit keyed hash of a key's canonical bytes ([Key.String]), never 0. It
// differs from process to process and is only a filter: after a match, compare the bytes.
func Hash(member []byte) uint64 {
	if h := maphash.Bytes(seed, member); h != 0 {
		return h
	}
	return 1
}
