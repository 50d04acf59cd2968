package hotkeys

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
)

const (
	// maxInvalidations is the approximate number of entries of the stream: more than an instance
	// reads at once, since one that has missed more empties its cache anyway.
	maxInvalidations = 1_000
	// invalidationLife is how long the stream lasts after its last entry.
	invalidationLife = 48 * time.Hour
)

// InvalidateTag invalidates the answers of a tag at all instances of a namespace, within a
// second. The tag of a key is [rules.Key.String]; only its identifier is sent, which
// onhot.TagID makes. The deadline is that of ctx.
func InvalidateTag(ctx context.Context, client redis.UniversalClient, namespace string, id uint64) (err error) {
	defer wrapError(&err, "invalidate answers")
	if err := redisconfig.Namespace(namespace); err != nil {
		return err
	}
	added, err := appendInvalidation(ctx, client, published.NewLayout(namespace), &published.Invalidation{Sender: newID(), Tags: []uint64{id}})
	if added {
		return nil // instances that were not notified poll
	}
	return err
}

// appendInvalidation appends an entry to the stream, and then notifies the instances. Not in one
// pipeline: a cluster may publish on another node before it adds the entry. It reports whether the
// entry was added, which it may be if there is an error. A foreign value is deleted. If that deletes
// a stream which another process has just begun, its readers notice.
func appendInvalidation(ctx context.Context, client redis.UniversalClient, layout published.Layout, i *published.Invalidation) (added bool, err error) {
	add := func() (*redis.StringCmd, error) {
		var entry *redis.StringCmd
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			entry = p.XAdd(ctx, &redis.XAddArgs{Stream: layout.Invalidation, MaxLen: maxInvalidations, Approx: true, Values: published.EncodeInvalidation(i)})
			p.PExpire(ctx, layout.Invalidation, invalidationLife)
			return nil
		})
		return entry, err
	}
	entry, err := add()
	if isWrongType(entry.Err()) {
		if err := client.Del(ctx, layout.Invalidation).Err(); err != nil {
			return false, err
		}
		entry, err = add()
	}
	if entry.Err() != nil {
		return false, err
	}
	return true, errors.Join(err, client.Publish(ctx, layout.Invalidation, "").Err())
}
