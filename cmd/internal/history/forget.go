package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// forgetting are the keys that no writer may keep. Only hashes of them are stored.
type forgetting struct {
	version string
	hashes  map[string]bool
}

// names reports whether a key is forgotten: its text, or one of its parameters.
func (f *forgetting) names(_, text string) bool {
	if len(f.hashes) == 0 {
		return false
	}
	for part := range partsOf(text) {
		if f.hashes[hashOf(part)] {
			return true
		}
	}
	return false
}

// partsOf yields the texts by which a key can be forgotten: "GET /search?q=phone&page=2",
// "q=phone&page=2", "q=phone" and "page=2".
func partsOf(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		if !yield(text) {
			return
		}
		_, params := splitKey(text)
		if params != text && !yield(params) {
			return
		}
		if strings.Contains(params, "&") {
			strings.SplitSeq(params, "&")(yield)
		}
	}
}

// splitKey returns the route of a key and its parameters.
func splitKey(text string) (route, params string) {
	i := strings.LastIndexByte(text, '?')
	return text[:max(0, i)], text[i+1:]
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// forgetting reads the keys that no writer may keep.
func (s *Store) forgetting(ctx context.Context) (forgetting, error) {
	all, err := s.client.HGetAll(ctx, s.forgotten).Result()
	f := forgetting{version: "0", hashes: make(map[string]bool, len(all))}
	for name := range all {
		if name == "version" {
			f.version = all[name]
		} else {
			f.hashes[name] = true
		}
	}
	return f, err
}

// Forgotten is what [Store.Forget] did.
type Forgotten struct {
	Chunks  int // chunks that were searched
	Removed int // series and marks that were removed
	Writers int // writers that have confirmed it
}

// ErrWriters is the error of [Store.Forget] if some writer has not confirmed. The key is removed from
// Redis, and that writer cannot write before it knows.
var ErrWriters = errors.New("some aggregator has not confirmed yet: it cannot write before it knows, and does not keep the key then")

// Forget removes a key from the history, and keeps it out for keep. The key is a whole text, its
// parameters, or one parameter. Forget returns when no chunk has it and each writer has dropped it
// from its memory, or with an error.
//
// No writer can bring it back: from the first step on each write of a writer that does not know the
// key is refused.
func (s *Store) Forget(ctx context.Context, key string, keep time.Duration) (done Forgotten, err error) {
	now := strconv.FormatInt(time.Now().Unix(), 10)
	if err := s.client.HSet(ctx, s.forgotten, hashOf(key), now).Err(); err != nil {
		return done, err
	}
	version, err := s.client.HIncrBy(ctx, s.forgotten, "version", 1).Result()
	if err != nil {
		return done, err
	}
	if err := s.client.PExpire(ctx, s.forgotten, keep).Err(); err != nil {
		return done, err
	}
	one := forgetting{hashes: map[string]bool{hashOf(key): true}}
	states, err := s.states(ctx)
	if err != nil {
		return done, err
	}
	for owner := range states {
		if err := s.forgetOf(ctx, owner, &one, &done); err != nil {
			return done, err
		}
	}
	if done.Writers, err = s.awaitWriters(ctx, version); err != nil {
		return done, err
	}
	var again Forgotten // nothing can have it now: see for sure
	for owner := range states {
		if err := s.forgetOf(ctx, owner, &one, &again); err != nil {
			return done, err
		}
	}
	if again.Removed > 0 {
		return done, fmt.Errorf("the key was found again in %d places", again.Removed)
	}
	return done, nil
}

// forgetOf removes keys from the chunks of an owner.
func (s *Store) forgetOf(ctx context.Context, owner string, keys *forgetting, done *Forgotten) error {
	starts, err := s.starts(ctx, owner)
	if err != nil {
		return err
	}
	for i, hash := range s.hashes(owner) {
		for _, start := range starts[i] {
			done.Chunks++
			n, err := s.forgetIn(ctx, hash, start, keys)
			if err != nil {
				return err
			}
			done.Removed += n
		}
	}
	return nil
}

// forgetIn removes keys from a chunk, which a writer may replace at the same time.
func (s *Store) forgetIn(ctx context.Context, hash string, start int64, keys *forgetting) (removed int, err error) {
	name := strconv.FormatInt(start, 10)
	for {
		value, err := s.client.HMGet(ctx, hash, name).Result()
		if err != nil {
			return 0, err
		}
		text, ok := value[0].(string)
		if !ok {
			return 0, nil // a writer dropped it
		}
		c, err := parseChunk([]byte(text))
		if err != nil { // it is not readable, and might have the keys
			return 1, s.client.HDel(ctx, hash, name).Err()
		}
		n := c.forget(keys.names)
		if n == 0 {
			return 0, nil
		}
		replaced, err := replaceScript.Run(ctx, s.client, []string{hash}, name, text, c.encode()).Int()
		if err != nil || replaced == 1 {
			return n, err
		}
	}
}

// awaitWriters waits until each writer that writes has dropped the forgotten keys of a version.
func (s *Store) awaitWriters(ctx context.Context, version int64) (confirmed int, err error) {
	const look = 100 * time.Millisecond
	for {
		states, err := s.states(ctx)
		if err != nil {
			return 0, err
		}
		waiting := 0
		confirmed = 0
		for _, state := range states {
			seen, _ := strconv.ParseInt(state.Seen, 10, 64)
			switch {
			case seen >= version:
				confirmed++
			case time.Since(time.Unix(state.Until, 0)) < aliveFor:
				waiting++
			}
		}
		if waiting == 0 {
			return confirmed, nil
		}
		select {
		case <-ctx.Done():
			return confirmed, ErrWriters
		case <-time.After(look):
		}
	}
}

// aliveFor is how long after its newest second a writer may still write.
const aliveFor = 15 * time.Second
