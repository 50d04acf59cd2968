package hotkeys

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// keepBaselines is how long an hour is kept: it is still compared with the same hour a week
// later.
const keepBaselines = (8*24 + 3) * time.Hour

// Baselines keeps hourly counts of keys in Redis: a hash for each hour, with a field for each
// part of the keys. Its Redis keys do not have the prefix of a [Layout], which instances may
// read.
type Baselines struct {
	client redis.UniversalClient
	prefix string
}

// NewBaselines returns the baselines of a namespace.
func NewBaselines(client redis.UniversalClient, namespace string) (*Baselines, error) {
	if !rules.ValidNamespace(namespace) {
		return nil, fmt.Errorf("baselines: namespace %q: want [A-Za-z0-9_-]+", namespace)
	}
	return &Baselines{client, "hotparam-days:{" + namespace + "}:"}, nil
}

func (b *Baselines) key(hour int64) string { return fmt.Sprint(b.prefix, hour) }

// Read returns the stored values of some hours, by part. Hours are counted from the Unix epoch.
func (b *Baselines) Read(ctx context.Context, hours []int64) (map[int64]map[string][]byte, error) {
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
func (b *Baselines) Write(ctx context.Context, hour int64, part string, value []byte) error {
	_, err := b.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, b.key(hour), part, value)
		p.PExpire(ctx, b.key(hour), keepBaselines)
		return nil
	})
	return err
}
