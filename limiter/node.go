package limiter

import (
	"encoding/binary"
	"sync/atomic"
)

// node is one key's entry in a table. All but kept and next are fixed.
//
// What a take reads of a short key is side by side, in one line of the cache: the key, and what
// K begins with. Where there are many keys a take mostly waits for memory, and bytes elsewhere
// would be one more place to wait for.
type node[K any] struct {
	next  atomic.Pointer[node[K]]
	short [1 + shortKey]byte // the key's length, and the key; or 0, and the hash
	kept  K
	long  *string // the key if it is longer
}

// shortKey is how many bytes a key has at most that is kept in its node.
const shortKey = 31

func newNode[K any](hash uint64, key []byte) *node[K] {
	n := &node[K]{}
	if size := len(key); 0 < size && size <= shortKey {
		n.short[0] = byte(size)
		copy(n.short[1:], key)
		return n
	}
	binary.NativeEndian.PutUint64(n.short[1:], hash)
	long := string(key)
	n.long = &long
	return n
}

// anew returns a node of the same key that keeps nothing yet.
func (n *node[K]) anew() *node[K] { return &node[K]{short: n.short, long: n.long} }

// key returns a copy of the key.
func (n *node[K]) key() string {
	if n.long != nil {
		return *n.long
	}
	return string(n.short[1 : 1+n.short[0]])
}

// hashed reports whether a long key may have the hash.
func (n *node[K]) hashed(hash uint64) bool { return binary.NativeEndian.Uint64(n.short[1:]) == hash }

func (n *node[K]) is(hash uint64, key []byte) bool {
	if size := int(n.short[0]); size > 0 {
		return size == len(key) && string(n.short[1:1+size]) == string(key)
	}
	return n.hashed(hash) && *n.long == string(key)
}

// isNamed is is for the key named(name, key).
func (n *node[K]) isNamed(hash uint64, name, key string) bool {
	if size := int(n.short[0]); size > 0 {
		return isNamed(n.short[1:1+size], name, key)
	}
	return n.hashed(hash) && isNamed(*n.long, name, key)
}

// isIn is is for the key prefix+key.
func (n *node[K]) isIn(hash uint64, prefix, key string) bool {
	if size := int(n.short[0]); size > 0 {
		return size == len(prefix)+len(key) && string(n.short[1+len(prefix):1+size]) == key && string(n.short[1:1+len(prefix)]) == prefix
	}
	return n.hashed(hash) && len(*n.long) == len(prefix)+len(key) && (*n.long)[len(prefix):] == key && (*n.long)[:len(prefix)] == prefix
}

// namedPrefix is the length of the prefix that says where the name ends.
const namedPrefix = 4

// named returns the key in a table of a name's key.
func named(name, key string) string { return string(appendNamed(nil, name, key)) }

func appendNamed(b []byte, name, key string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
	return append(append(b, name...), key...)
}

func isNamed[B []byte | string](k B, name, key string) bool {
	if len(k) != namedPrefix+len(name)+len(key) {
		return false
	}
	end := namedPrefix + len(name)
	return string(k[end:]) == key && string(k[namedPrefix:end]) == name && binary.BigEndian.Uint32([]byte(k[:namedPrefix])) == uint32(len(name))
}

// unnamed returns the arguments of named.
func unnamed(k string) (name, key string) {
	end := namedPrefix + binary.BigEndian.Uint32([]byte(k[:namedPrefix]))
	return k[namedPrefix:end], k[end:]
}
