package hotkeys

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
	"github.com/hotparam/hotparam/rules"
)

// List returns the hot keys of a namespace from Redis, the highest rate first. Until is the
// entry's own end, on Redis's clock. Without a heartbeat no key is hot. The deadline is
// that of ctx.
func List(ctx context.Context, client redis.UniversalClient, namespace string) (hot []published.Hot, err error) {
	defer wrapError(&err, "list hot keys")
	if err := redisconfig.Namespace(namespace); err != nil {
		return nil, err
	}
	set, err := readWholeSet(ctx, client, published.NewLayout(namespace))
	if err != nil || set.beat == 0 {
		return nil, err
	}
	hot = slices.DeleteFunc(set.hot, func(h published.Hot) bool { return !h.Until.After(set.readAt) })
	hotset.SortByRate(hot)
	return hot, nil
}

// ListSuspects returns the suspects of a namespace, the highest rate first: keys that may be hot,
// but are not certain to be. Only Key and Rate are set. The deadline is that of ctx.
func ListSuspects(ctx context.Context, client redis.UniversalClient, namespace string) (suspects []published.Hot, err error) {
	defer wrapError(&err, "list suspects")
	if err := redisconfig.Namespace(namespace); err != nil {
		return nil, err
	}
	members, err := client.ZRangeWithScores(ctx, published.NewLayout(namespace).Suspects, 0, -1).Result()
	if err != nil {
		return nil, err
	}
	return SuspectsOf(members), nil
}

// SuspectsOf returns the suspects that Redis holds, as [ListSuspects] does.
func SuspectsOf(members []redis.Z) (suspects []published.Hot) {
	for _, z := range members {
		member, _ := z.Member.(string)
		if key, ok := rules.ParseKey(member); ok {
			suspects = append(suspects, published.Hot{Key: key, Rate: z.Score})
		}
	}
	hotset.SortByRate(suspects)
	return suspects
}

// ListInstances returns the instances of a namespace that send counts, by name. Heard is
// on the local clock, whatever its offset from Redis's. The deadline is that of ctx.
func ListInstances(ctx context.Context, client redis.UniversalClient, namespace string) (instances []published.Instance, err error) {
	defer wrapError(&err, "list instances")
	if err := redisconfig.Namespace(namespace); err != nil {
		return nil, err
	}
	members, clock, err := readHeard(ctx, client, published.NewLayout(namespace).Instances, 0)
	if err != nil {
		return nil, err
	}
	return InstancesOf(members, clock, time.Now()), nil
}

// InstancesOf returns the instances that Redis holds at the time clock of its own, which is now here.
func InstancesOf(members []redis.Z, clock, now time.Time) (instances []published.Instance) {
	for _, z := range members {
		name, _ := z.Member.(string)
		if age := ageOf(z, clock); age < instanceLife { // expired ones are removed only once a second
			instances = append(instances, published.Instance{Name: name, Heard: now.Add(-age)})
		}
	}
	slices.SortFunc(instances, func(a, b published.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return instances
}

// readHeard reads a set whose scores are the times at which its members were last heard, from the
// member at index first on, and Redis's clock. Negative indices count from the end.
func readHeard(ctx context.Context, client redis.UniversalClient, set string, first int64) ([]redis.Z, time.Time, error) {
	var members *redis.ZSliceCmd
	var clock *redis.TimeCmd
	err := Transact(ctx, client, func(tx redis.Pipeliner) {
		members = tx.ZRangeWithScores(ctx, set, first, -1)
		clock = tx.Time(ctx)
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return members.Val(), clock.Val(), nil
}

// ageOf returns the time since a member of such a set was heard.
func ageOf(z redis.Z, clock time.Time) time.Duration {
	return max(0, clock.Sub(time.UnixMilli(int64(z.Score))))
}

// wrapError wraps *err, unless it is nil, in an error that names the action.
func wrapError(err *error, action string) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", action, *err)
	}
}
