package redislimiter

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
)

//go:embed lua/probe.lua
var probeLua string

var probeScript = newScript(probeLua)

// probeSuffix follows the hash tag in the name of the key that a probe writes. The key is in
// the slot to probe and expires after ten seconds.
const probeSuffix = ":probe"

var _ limiter.Clustered = (*Store)(nil)

// Node implements [limiter.Clustered]. In a cluster it returns the address of the master that
// holds op's key, else "".
func (s *Store) Node(ctx context.Context, op limiter.Op) string {
	if _, ok := s.client.(*redis.ClusterClient); !ok {
		return ""
	}
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	key, _ := s.keyName(op.Name, op.Key)
	return server(ctx, s.client, key)
}

// Probe implements [limiter.Clustered]. It writes its own key in the slot of op's key.
func (s *Store) Probe(ctx context.Context, op limiter.Op) error {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	_, tag := s.keyName(op.Name, op.Key)
	probe := call{script: probeScript, keys: []string{redisKey(s.cfg.Namespace, tag) + probeSuffix}}
	if err := run(ctx, s.client, &probe); err != nil {
		return fmt.Errorf("redislimiter: probe: %w", backendError(ctx, err))
	}
	return nil
}

// server returns the address of the master that holds the key, or "" if there is only one or
// it is unknown.
func server(ctx context.Context, client redis.UniversalClient, key string) string {
	if c, ok := client.(*redis.ClusterClient); ok {
		if node, err := c.MasterForKey(ctx, key); err == nil {
			return node.Options().Addr
		}
	}
	return ""
}
