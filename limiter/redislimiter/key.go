package redislimiter

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/hotparam/hotparam/limiter"
)

// letters are the letters of all algorithms.
const letters = "blWfsk"

// appendKeys appends the Redis keys that lua/run.lua needs for an ask of the key named base. Each
// algorithm has its own state: under base for the first one, else under base and its letter. All
// of them share the lock of a penalty. The charges that store made under a mark are kept under
// the store's name.
func (p *plan) appendKeys(keys []string, base, store string, ask *limiter.Request) []string {
	kind := ask.Kind
	ownKey := base + ":" + string(p.letter)
	keys = append(keys, ownKey[:len(base)], ownKey)
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
	if kind == limiter.Charge && ask.Mark > 0 {
		keys = append(keys, base+":charged:"+store)
	}
	return keys
}

// keyName returns the Redis key of one key of a limit, and its hash tag. Names and keys are any
// bytes, including braces, so the Redis key contains only a collision-resistant hash of them.
func (s *Store) keyName(name, key string) (full, tag string) {
	if s.cfg.Tag == nil {
		tag = hashOf(name, key)
		return redisKey(s.cfg.Namespace, tag) + ":limit", tag
	}
	tag = hashOf(s.cfg.Tag(name, key))
	return redisKey(s.cfg.Namespace, tag) + ":" + hashOf(name, key) + ":limit", tag
}

// redisKey returns the prefix of all Redis keys of one hash tag.
func redisKey(namespace, tag string) string { return "hotparam:{" + namespace + "/" + tag + "}" }

// hashOf returns 128 bits of a hash of parts, each with its length.
func hashOf(parts ...string) string {
	var room [32]byte
	return string(appendHash(room[:0], parts...))
}

// appendHash appends hashOf(parts...) to b.
func appendHash(b []byte, parts ...string) []byte {
	var room [192]byte
	text := room[:0]
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return hex.AppendEncode(b, sum[:16])
}
