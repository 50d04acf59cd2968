package redislimiter

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/hotparam/hotparam/limiter"
)

// letters are those of all algorithms.
const letters = "blWfsk"

// appendKeys appends the keys in Redis that lua/run.lua wants for an ask of the key
// whose name is base. Each algorithm has a state of its own: under base if it was there
// first, else under base and its letter. The lock of a penalty is for all of them.
func (p *plan) appendKeys(keys []string, base string, kind limiter.Kind) []string {
	own := base + ":" + string(p.letter)
	keys = append(keys, own[:len(base)], own)
	if kind == limiter.Forget {
		for _, letter := range []byte(letters) {
			if letter != p.letter {
				keys = append(keys, base+":"+string(letter))
			}
		}
	}
	if kind == limiter.Forget || p.quota.Penalty > 0 {
		keys = append(keys, base+":lock")
	}
	return keys
}

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
