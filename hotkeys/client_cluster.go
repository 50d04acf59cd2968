package hotkeys

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// reloadCluster is the interval at which the client reads the map of a cluster. The answers
	// of other nodes show that a slot has moved, but not that a node has died.
	reloadCluster = time.Second
	// mapTimeout bounds the time in which one node answers with the map. go-redis picks any node,
	// even one that hangs, waits up to 3 s, and uses the old map until then.
	mapTimeout = 500 * time.Millisecond
)

// newCluster returns a client of a cluster whose map is kept fresh.
func newCluster(o *redis.ClusterOptions) *redis.ClusterClient {
	o.ClusterStateReloadInterval = reloadCluster
	client, asking := redis.NewClusterClient(o), &mapHook{}
	client.OnNewNode(func(node *redis.Client) { node.AddHook(asking) })
	return client
}

// mapHook bounds the time in which a node answers with the map of the cluster. As for calls in an
// outage, the bound is longer after failures in a row, to allow for the round trips of a new
// connection.
type mapHook struct{ failed atomic.Int32 }

func (h *mapHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *mapHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *mapHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "cluster" {
			return next(ctx, cmd)
		}
		ctx, cancel := context.WithTimeout(ctx, mapTimeout*time.Duration(1+min(h.failed.Load(), maxPatience-1)))
		defer cancel()
		err := next(ctx, cmd)
		var answer redis.Error
		if err == nil || errors.As(err, &answer) {
			h.failed.Store(0)
		} else {
			h.failed.Add(1)
		}
		return err
	}
}
