package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
)

// fleet is what runs: a Redis, an aggregator, instances.
type fleet struct {
	config    EnforceConfig
	parts     []*part // in the order of their start
	instances []*part
	redis     string // URL
	namespace string
	rand      *mathrand.Rand
	samples   int
}

// newFleet starts all of it and returns when all instances follow the hot set. What
// it returns is to be stopped, whether or not there is an error.
func newFleet(ctx context.Context, c EnforceConfig) (*fleet, error) {
	f := &fleet{config: c, redis: c.Redis, namespace: "bench-" + strings.ToLower(rand.Text()), rand: newRand(1)}
	if f.redis == "" {
		if err := f.startRedis(ctx); err != nil {
			return f, err
		}
	}
	if err := f.withRedis(func(client redis.UniversalClient) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		return client.Ping(ctx).Err()
	}); err != nil {
		return f, fmt.Errorf("%w: %w", ErrNoRedis, err)
	}
	common := fleetConfig{Redis: f.redis, Namespace: f.namespace, Threshold: c.Threshold, Slow: c.Slow}
	aggregator, err := f.start(ctx, "aggregator", common)
	if err != nil {
		return f, err
	}
	if err := aggregator.receive(&common.Aggregator); err != nil {
		return f, err
	}
	for i := range c.Instances {
		config := instanceConfig{fleetConfig: common, Name: fmt.Sprintf("bench-%d", i+1), Of: c.Instances, Number: i}
		instance, err := f.start(ctx, "instance", config)
		if err != nil {
			return f, err
		}
		f.instances = append(f.instances, instance)
	}
	for _, instance := range f.instances {
		var ready bool
		if err := instance.receive(&ready); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *fleet) start(ctx context.Context, name string, config any) (*part, error) {
	p, err := startPart(ctx, f.config.Command, name, config)
	if err == nil {
		f.parts = append(f.parts, p)
	}
	return p, err
}

// startRedis starts a server of the PATH.
func (f *fleet) startRedis(ctx context.Context) error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("%w: no redis-server in PATH", ErrNoRedis)
	}
	server, err := f.start(ctx, "redis", redisConfig{Path: path})
	if err != nil {
		return err
	}
	return server.receive(&f.redis)
}

// stop ends all of it, the last one first, so that what has been counted still finds
// its way, and leaves nothing in a Redis that was there before.
func (f *fleet) stop() error {
	var errs []error
	for _, p := range slices.Backward(f.parts) {
		errs = append(errs, p.stop())
	}
	if f.config.Redis != "" && len(f.parts) > 0 {
		errs = append(errs, f.withRedis(f.clean))
	}
	return errors.Join(errs...)
}

func (f *fleet) withRedis(do func(redis.UniversalClient) error) error {
	client, err := hotkeys.NewClient(f.redis)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all answers are there
	return do(client)
}

// clean deletes the keys of the namespace.
func (f *fleet) clean(client redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	keys := client.Scan(ctx, 0, "hotparam:{"+f.namespace+"*", 1000).Iterator()
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
