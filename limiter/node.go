package limiter

import (
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"
)

// keyNode is one key's entry in a table. All fields but kept and next are fixed.
//
// The data that a take of a short key reads is in one line of the cache: the key, and the first
// fields of kept. With many keys a take mostly waits for memory, and bytes elsewhere would be
// one more place to wait for.
type keyNode struct {
	next  atomic.Pointer[keyNode]
	hash  uint32             // lower half of the hash
	short [1 + shortKey]byte // the key's length and the key; 0 for a long key
	kept  keyStates
	long  *string // the key if it is longer
}

// shortKey is the maximum length in bytes of a key that is kept in its node.
const shortKey = 27

func newNode(hash uint64, key []byte) *keyNode {
	n := &keyNode{hash: uint32(hash)}
	if size := len(key); 0 < size && size <= shortKey {
		n.short[0] = byte(size)
		copy(n.short[1:], key)
		return n
	}
	long := string(key)
	n.long = &long
	return n
}

// emptyCopy returns a node of the same key without a state.
func (n *keyNode) emptyCopy() *keyNode { return &keyNode{hash: n.hash, short: n.short, long: n.long} }

// key returns a copy of the key.
func (n *keyNode) key() string {
	if n.long != nil {
		return *n.long
	}
	return string(n.short[1 : 1+n.short[0]])
}

// keyed returns the hash of the key under a seed.
func (n *keyNode) keyed(seed maphash.Seed) uint64 {
	if n.long != nil {
		return maphash.String(seed, *n.long)
	}
	return maphash.Bytes(seed, n.short[1:1+n.short[0]])
}

func (n *keyNode) hasKey(hash uint64, key []byte) bool {
	if n.hash != uint32(hash) {
		return false
	}
	if size := int(n.short[0]); size > 0 {
		return string(n.short[1:1+size]) == string(key)
	}
	return *n.long == string(key)
}

// isNamed is like hasKey, for the key named(name, key).
func (n *keyNode) isNamed(hash uint64, name, key string) bool {
	if n.hash != uint32(hash) {
		return false
	}
	if size := int(n.short[0]); size > 0 {
		return isNamed(n.short[1:1+size], name, key)
	}
	return isNamed(*n.long, name, key)
}

// longName is the first byte of the keys of long names, whose length is in the next four bytes.
// The first byte of other keys is the length of their name.
const longName = 1<<8 - 1

// named returns the table's key for a name and its key.
func named(name, key string) string { return string(appendNamed(nil, name, key)) }

func appendNamed(b []byte, name, key string) []byte {
	if len(name) < longName {
		b = append(b, byte(len(name)))
	} else {
		b = binary.BigEndian.AppendUint32(append(b, longName), uint32(len(name)))
	}
	return append(append(b, name...), key...)
}

func isNamed[B []byte | string](k B, name, key string) bool {
	start := nameAt(k)
	end := start + len(name)
	return len(k) == end+len(key) && string(k[end:]) == key && string(k[start:end]) == name &&
		nameLength(k) == len(name)
}

// nameAt returns the index of the name in a key.
func nameAt[B []byte | string](k B) int {
	if k[0] < longName {
		return 1
	}
	return 5
}

func nameLength[B []byte | string](k B) int {
	if k[0] < longName {
		return int(k[0])
	}
	return int(binary.BigEndian.Uint32([]byte(k[1:5])))
}

// unnamed returns the arguments of named.
func unnamed(k string) (name, key string) {
	start := nameAt(k)
	end := start + nameLength(k)
	return k[start:end], k[end:]
}
