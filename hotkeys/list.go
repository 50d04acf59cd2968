package hotkeys

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/redisconfig"
	"github.com/hotparam/hotparam/rules"
)

// List returns the hot keys of a namespace from Redis, the highest rate first. Until is the
// entry's own end, on Redis's clock. Without a heartbeat no key is hot. The deadline is
// that of ctx.
func List(ctx context.Context, client redis.UniversalClient, namespace string) ([]rules.Hot, error) {
	if err := redisconfig.Namespace(namespace); err != nil {
		return nil, fmt.Errorf("list hot keys: %w", err)
	}
	set, err := readWholeSet(ctx, client, NewLayout(namespace))
	if err != nil {
		return nil, fmt.Errorf("list hot keys: %w", err)
	}
	if set.beat == 0 {
		return nil, nil
	}
	hot := slices.DeleteFunc(set.hot, func(h rules.Hot) bool { return !h.Until.After(set.readAt) })
	hotset.SortByRate(hot)
	return hot, nil
}

// ListSuspects returns the suspects of a namespace, the highest rate first: keys that may be hot,
// but are not certain to be. Only Key and Rate are set. The deadline is that of ctx.
func ListSuspects(ctx context.Context, client redis.UniversalClient, namespace string) ([]rules.Hot, error) {
	if err := redisconfig.Namespace(namespace); err != nil {
		return nil, fmt.Errorf("list suspects: %w", err)
	}
	members, err := client.ZRangeWithScores(ctx, NewLayout(namespace).Suspects, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list suspects: %w", err)
	}
	var suspects []rules.Hot
	for _, z := range members {
		member, _ := z.Member.(string)
		if key, ok := rules.ParseKey(member); ok {
			suspects = append(suspects, rules.Hot{Key: key, Rate: z.Score})
		}
	}
	hotset.SortByRate(suspects)
	return suspects, nil
}

// ListInstances returns the instances of a namespace that send counts, by name. Heard is
// on the local clock, whatever its offset from Redis's. The deadline is that of ctx.
func ListInstances(ctx context.Context, client redis.UniversalClient, namespace string) ([]rules.Instance, error) {
	if err := redisconfig.Namespace(namespace); err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	var members *redis.ZSliceCmd
	var at *redis.TimeCmd
	err := transact(ctx, client, func(tx redis.Pipeliner) {
		members = tx.ZRangeWithScores(ctx, NewLayout(namespace).Instances, 0, -1)
		at = tx.Time(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	now := time.Now()
	var instances []rules.Instance
	for _, z := range members.Val() {
		name, _ := z.Member.(string)
		age := at.Val().Sub(time.UnixMilli(int64(z.Score)))
		if age < instanceLife { // expired ones are removed only once a second
			instances = append(instances, rules.Instance{Name: name, Heard: now.Add(-max(0, age))})
		}
	}
	slices.SortFunc(instances, func(a, b rules.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return instances, nil
}
