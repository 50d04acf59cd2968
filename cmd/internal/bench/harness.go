package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
)

// harness holds the parts of a measurement with several processes, and a Redis with a namespace
// for the measurement.
type harness struct {
	command   []string       // command that starts a part
	given     string         // URL of an existing Redis, or empty
	parts     []*partProcess // parts in the order in which they started
	instances []*partProcess // those of parts that are instances
	redis     string         // URL
	reached   bool           // whether Redis has answered
	namespace string
}

func newHarness(command []string, redis string) harness {
	return harness{command: command, given: redis, namespace: "bench-" + strings.ToLower(rand.Text())}
}

func (h *harness) start(ctx context.Context, name string, config any) (*partProcess, error) {
	p, err := startPart(ctx, h.command, name, config)
	if err == nil {
		h.parts = append(h.parts, p)
	}
	return p, err
}

// startInstances starts n instances as the part called name, and returns when all are ready.
func (h *harness) startInstances(ctx context.Context, name string, n int, config func(i int) any) error {
	for i := range n {
		instance, err := h.start(ctx, name, config(i))
		if err != nil {
			return err
		}
		h.instances = append(h.instances, instance)
	}
	for _, instance := range h.instances {
		var ready bool
		if err := instance.receive(&ready); err != nil {
			return err
		}
	}
	return nil
}

// useRedis uses the given Redis, or starts a redis-server from the PATH.
func (h *harness) useRedis(ctx context.Context) error {
	if h.redis = h.given; h.redis == "" {
		if err := h.startRedis(ctx); err != nil {
			return err
		}
	}
	err := h.withRedis(func(client redis.UniversalClient) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		return client.Ping(ctx).Err()
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRedis, err)
	}
	h.reached = true
	return nil
}

func (h *harness) startRedis(ctx context.Context) error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("%w: no redis-server in PATH", ErrNoRedis)
	}
	server, err := h.start(ctx, "redis", redisConfig{Path: path})
	if err != nil {
		return err
	}
	return server.receive(&h.redis)
}

// stop ends all parts, the last one first, so that counts in flight still arrive. It deletes the
// measurement's keys from a Redis that existed before.
func (h *harness) stop() error {
	var errs []error
	for _, p := range slices.Backward(h.parts) {
		errs = append(errs, p.stop())
	}
	if h.given != "" && h.reached {
		errs = append(errs, h.withRedis(h.clean))
	}
	return errors.Join(errs...)
}

func (h *harness) withRedis(do func(redis.UniversalClient) error) error {
	client, err := hotkeys.NewClient(h.redis)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all answers have arrived
	return do(client)
}

// clean deletes the keys of the namespace.
func (h *harness) clean(client redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	keys := client.Scan(ctx, 0, "hotparam:{"+h.namespace+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("bench: clean up: %w", err)
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("bench: clean up: %w", err)
	}
	return nil
}
