package history

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// steps are the seconds of a column in each level. A chunk has the columns of span seconds, and is
// kept for a time; zero is [Config.Keep].
var steps = [...]struct {
	step, span int64
	keep       time.Duration
}{
	{1, 60, 70 * time.Minute},
	{10, 600, 13 * time.Hour},
	{60, 3600, 0},
	{600, 36_000, 0},
}

const levels = len(steps)

// Store is the history of a namespace in Redis. Its keys have a prefix of their own, which instances
// may not read.
type Store struct {
	client    redis.UniversalClient
	prefix    string
	owners    string // HASH: owner → its state as JSON, "owner epoch" → the epoch of its writer
	forgotten string // HASH: hash of a key → when it was forgotten, and "version"
}

var (
	//go:embed write.lua
	writeLua string
	//go:embed replace.lua
	replaceLua string

	writeScript   = redis.NewScript(writeLua)
	replaceScript = redis.NewScript(replaceLua)
)

// NewStore returns the history of a namespace. It makes no call.
func NewStore(client redis.UniversalClient, namespace string) (*Store, error) {
	if !rules.ValidNamespace(namespace) {
		return nil, fmt.Errorf("history: namespace %q: want [A-Za-z0-9_-]+", namespace)
	}
	prefix := "hotparam-history:{" + namespace + "}:"
	return &Store{client, prefix, prefix + "owners", prefix + "forgotten"}, nil
}

// panes returns the hash of an owner's panes: second → chunk of one column.
func (s *Store) panes(owner string) string { return s.prefix + "panes:" + owner }

// chunks returns the hash of an owner's chunks of a level: start → chunk.
func (s *Store) chunks(level int, owner string) string {
	return s.prefix + strconv.FormatInt(steps[level].step, 10) + "s:" + owner
}

// hashes returns the hashes of an owner: its panes, and then its chunks by level.
func (s *Store) hashes(owner string) []string {
	all := []string{s.panes(owner)}
	for level := range levels {
		all = append(all, s.chunks(level, owner))
	}
	return all
}

// ownerState is what an owner's writer says of it.
type ownerState struct {
	Bytes int64         `json:"bytes"` // size of its chunks
	Until int64         `json:"until"` // newest second
	First [levels]int64 `json:"first"` // earliest second that it has in each level, or 0
	Seen  string        `json:"seen"`  // version of the forgotten keys
}

// states returns the states of all owners.
func (s *Store) states(ctx context.Context) (map[string]ownerState, error) {
	all, err := s.client.HGetAll(ctx, s.owners).Result()
	if err != nil {
		return nil, err
	}
	states := make(map[string]ownerState, len(all)/2)
	for owner, text := range all {
		var state ownerState
		if len(text) > 0 && text[0] == '{' && json.Unmarshal([]byte(text), &state) == nil {
			states[owner] = state
		}
	}
	return states, nil
}

// claim makes the caller the writer of an owner, and returns its epoch. No earlier one can write any
// more.
func (s *Store) claim(ctx context.Context, owner string) (epoch int64, err error) {
	return s.client.HIncrBy(ctx, s.owners, owner+" epoch", 1).Result()
}

// field is a field of one of an owner's hashes: 0 for the panes, then one more than the level.
type field struct {
	hash  int
	start int64
}

// write writes and deletes fields in one step, and answers "ok", "fenced" or "forget".
func (s *Store) write(ctx context.Context, owner string, epoch int64, forgotten string, state ownerState, keep time.Duration, set map[field][]byte, drop []field) (string, error) {
	text, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	const firstHash = 3 // index of the first of hashes in KEYS, which counts from 1
	args := make([]any, 0, 6+3*len(set)+2*len(drop))
	args = append(args, owner, epoch, forgotten, text, keep.Milliseconds(), len(set))
	for f, value := range set {
		args = append(args, firstHash+f.hash, f.start, value)
	}
	for _, f := range drop {
		args = append(args, firstHash+f.hash, f.start)
	}
	return writeScript.Run(ctx, s.client, append([]string{s.owners, s.forgotten}, s.hashes(owner)...), args...).Text()
}

// read returns the chunks of some fields of a hash. One that is missing or cannot be read is nil, and
// the latter is counted.
func (s *Store) read(ctx context.Context, hash string, starts []int64) (found []*chunk, unreadable int, err error) {
	names := make([]string, len(starts))
	for i, start := range starts {
		names[i] = strconv.FormatInt(start, 10)
	}
	values, err := s.client.HMGet(ctx, hash, names...).Result()
	if err != nil {
		return nil, 0, err
	}
	found = make([]*chunk, len(values))
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		c, err := parseChunk([]byte(text))
		if err != nil {
			unreadable++
			continue
		}
		found[i] = c
	}
	return found, unreadable, nil
}

// starts returns the fields of each of an owner's hashes.
func (s *Store) starts(ctx context.Context, owner string) ([][]int64, error) {
	hashes := s.hashes(owner)
	answers := make([]*redis.StringSliceCmd, len(hashes))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, hash := range hashes {
			answers[i] = p.HKeys(ctx, hash)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	starts := make([][]int64, len(hashes))
	for i, answer := range answers {
		for _, name := range answer.Val() {
			if start, err := strconv.ParseInt(name, 10, 64); err == nil {
				starts[i] = append(starts[i], start)
			}
		}
	}
	return starts, nil
}

// sizes returns the lengths of an owner's fields.
func (s *Store) sizes(ctx context.Context, owner string) (map[field]int64, error) {
	starts, err := s.starts(ctx, owner)
	if err != nil {
		return nil, err
	}
	hashes := s.hashes(owner)
	answers := make(map[field]*redis.Cmd)
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for hash := range hashes {
			for _, start := range starts[hash] {
				answers[field{hash, start}] = p.Do(ctx, "HSTRLEN", hashes[hash], start)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sizes := make(map[field]int64, len(answers))
	for f, answer := range answers {
		if sizes[f], err = answer.Int64(); err != nil {
			return nil, err
		}
	}
	return sizes, nil
}
