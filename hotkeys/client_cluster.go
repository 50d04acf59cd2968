package hotkeys

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// reloadCluster is how old the client's map of a cluster may be: the death of
	// a node, unlike a slot that moved, is not told by another's answer.
	reloadCluster = time.Second
	// mapTimeout is how long one node is asked for the map. go-redis asks any of them, also
	// one that hangs, for up to 3 s, and meanwhile goes by the old map.
	mapTimeout = 500 * time.Millisecond
)

// newCluster returns a client of a cluster that asks for the map in time.
func newCluster(o *redis.ClusterOptions) *redis.ClusterClient {
	o.ClusterStateReloadInterval = reloadCluster
	client, asking := redis.NewClusterClient(o), &mapHook{}
	client.OnNewNode(func(node *redis.Client) { node.AddHook(asking) })
	return client
}

// mapHook bounds the time in which a node of one cluster answers where the slots are. The
// bound is longer after nodes have failed in a row, as that of a call is in an outage:
// where the whole way is slow, a new connection costs an exchange more.
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
