package redislimiter

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter/internal/breaker"
)

//go:embed lua/probe_set.lua
var probeSetLua string

var probeSet = newScript(probeSetLua)

// gate stops calls of a [Semaphore] or a [Permits] to servers that are unavailable. Their keys
// are sorted sets, and a probe writes to the key whose call failed.
type gate struct {
	client   redis.UniversalClient
	timeout  time.Duration
	breakers *breaker.Set[string] // a sample is a key on the node
}

// defaultRetry is the time before the first probe of a server that failed.
const defaultRetry = 250 * time.Millisecond

// maxRetries is the largest factor by which that time grows.
const maxRetries = 4

// newGate returns a gate whose breakers have the configuration c. It sets Probe and Max.
func newGate(client redis.UniversalClient, timeout time.Duration, c breaker.Config[string]) *gate {
	g := &gate{client: client, timeout: timeout}
	c.Probe, c.Max = g.probe, maxRetries*c.Min
	g.breakers = breaker.New(c)
	return g
}

// probe writes to the server that has the sorted set key. A key of a foreign type is not the
// server's fault: a server that refuses writes does so before it examines the key.
func (g *gate) probe(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	if err := run(ctx, g.client, &call{script: probeSet, keys: []string{key}}); !isAnswer(err) {
		return err
	}
	return nil
}

// admits reports whether the server of the key may be asked.
func (g *gate) admits(ctx context.Context, key string) bool {
	if !g.breakers.Any() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	return !g.breakers.Away(ctx, "") && !g.breakers.Away(ctx, server(ctx, g.client, key))
}

// recordOutcome records the outcome of a call for the key that began at began. A hasty caller gave
// up in less than half of the timeout. Its failure counts only if it waited for at least a tenth of
// the timeout, and if all callers give up like that.
func (g *gate) recordOutcome(ctx context.Context, key string, began time.Time, err error, hasty bool) {
	if err == nil || isAnswer(err) {
		if g.breakers.Doubted() {
			g.breakers.Answered(server(ctx, g.client, key), began)
		}
		return
	}
	if hasty && time.Since(began) < g.timeout/10 {
		return
	}
	node := server(ctx, g.client, key)
	if !hasty || g.breakers.Left(node) {
		g.breakers.Failed(node, began, err, key)
	}
}
