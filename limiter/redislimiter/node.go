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

// probeSuffix follows the hash tag in the name of the key that a probe writes: it is in
// the slot that the probe is about, and is gone after ten seconds.
const probeSuffix = ":probe"

var _ limiter.Clustered = (*Store)(nil)

// Node implements [limiter.Clustered]: of a cluster, the address of the master that has
// op's key, and else empty.
func (s *Store) Node(ctx context.Context, op limiter.Op) string {
	if _, ok := s.client.(*redis.ClusterClient); !ok {
		return ""
	}
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	key, _ := s.keyName(op.Name, op.Key)
	return server(ctx, s.client, key)
}

// Probe implements [limiter.Clustered]: it writes a key of its own, in the slot of op's.
func (s *Store) Probe(ctx context.Context, op limiter.Op) error {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	_, tag := s.keyName(op.Name, op.Key)
	probe := call{script: probeScript, keys: []string{redisKey(s.cfg.Namespace, tag) + probeSuffix}}
	if err := run(ctx, s.client, &probe); err != nil {
		return fmt.Errorf("redislimiter: probe: %w", wrong(ctx, err))
	}
	return nil
}

// server returns the address of the master that has the key now; empty where there is but
// one, or it is not known.
func server(ctx context.Context, client redis.UniversalClient, key string) string {
	if c, ok := client.(*redis.ClusterClient); ok {
		if node, err := c.MasterForKey(ctx, key); err == nil {
			return node.Options().Addr
		}
	}
	return ""
}
