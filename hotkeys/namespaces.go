package hotkeys

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// maxNamespaces is the most namespaces that [ListNamespaces] returns.
const maxNamespaces = 10

// ListNamespaces returns namespaces with a live publisher, sorted. It is for hints, when a
// namespace has been misspelled. It makes a bounded search of all keys of Redis, which needs the
// right to SCAN. If Redis has very many keys it may find none. If it fails, it also returns the
// namespaces found before. The deadline is that of ctx.
func ListNamespaces(ctx context.Context, client redis.UniversalClient) (found []string, err error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		found, err = appendNamespaces(ctx, nil, client)
	} else {
		var mu sync.Mutex
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) (err error) {
			mu.Lock()
			defer mu.Unlock()
			found, err = appendNamespaces(ctx, found, node)
			return err
		})
	}
	slices.Sort(found)
	return found, err
}

// appendNamespaces appends the namespaces of one server.
func appendNamespaces(ctx context.Context, found []string, server redis.Cmdable) ([]string, error) {
	const rounds, perRound = 200, 1000
	cursor := uint64(0)
	for range rounds {
		keys, next, err := server.Scan(ctx, cursor, "hotparam:{*}:beat", perRound).Result()
		if err != nil {
			return found, err
		}
		for _, key := range keys {
			name := strings.TrimSuffix(strings.TrimPrefix(key, "hotparam:{"), "}:beat")
			if rules.ValidNamespace(name) && !slices.Contains(found, name) && len(found) < maxNamespaces {
				found = append(found, name)
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	return found, nil
}
