package redislimiter

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// keyName is the key in Redis of one key of a limit, and its hash tag. Names and keys
// are any bytes, braces too, so none of them stand in it but as a hash, which nobody
// can make collide.
func (s *Store) keyName(name, key string) (full, tag string) {
	if s.cfg.Tag == nil {
		tag = hashOf(name, key)
		return redisKey(s.cfg.Namespace, tag) + ":limit", tag
	}
	tag = hashOf(s.cfg.Tag(name, key))
	return redisKey(s.cfg.Namespace, tag) + ":" + hashOf(name, key) + ":limit", tag
}

// redisKey is what all keys of one hash tag in Redis begin with.
func redisKey(namespace, tag string) string { return "hotparam:{" + namespace + "/" + tag + "}" }

// hashOf is 128 bits of the hash of some strings, each with its length.
func hashOf(parts ...string) string {
	var room [192]byte
	b := room[:0]
	for _, part := range parts {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}
