package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// baselineLife is how long an hour is kept: it is still compared with the same hour a week
// later.
const baselineLife = (8*24 + 3) * time.Hour

// baselineStore keeps hourly counts of keys in Redis: a hash for each hour, with a field for each
// part of the keys. Its Redis keys do not have the prefix of a [published.Layout], which instances
// may read.
type baselineStore struct {
	client redis.UniversalClient
	prefix string
}

// newBaselineStore returns the baselines of a namespace.
func newBaselineStore(client redis.UniversalClient, namespace string) (*baselineStore, error) {
	if !rules.ValidNamespace(namespace) {
		return nil, fmt.Errorf("baselines: namespace %q: want [A-Za-z0-9_-]+", namespace)
	}
	return &baselineStore{client, "hotparam-days:{" + namespace + "}:"}, nil
}

func (b *baselineStore) key(hour int64) string { return fmt.Sprint(b.prefix, hour) }

// Read returns the stored values of some hours, by part. Hours are counted from the Unix epoch.
func (b *baselineStore) Read(ctx context.Context, hours []int64) (map[int64]map[string][]byte, error) {
	answers := make([]*redis.MapStringStringCmd, len(hours))
	_, err := b.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, hour := range hours {
			answers[i] = p.HGetAll(ctx, b.key(hour))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	found := make(map[int64]map[string][]byte)
	for i, answer := range answers {
		parts := make(map[string][]byte)
		for part, value := range answer.Val() {
			parts[part] = []byte(value)
		}
		found[hours[i]] = parts
	}
	return found, nil
}

// Write stores the value of a part in an hour, and replaces the one before.
func (b *baselineStore) Write(ctx context.Context, hour int64, part string, value []byte) error {
	_, err := b.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, b.key(hour), part, value)
		p.PExpire(ctx, b.key(hour), baselineLife)
		return nil
	})
	return err
}
