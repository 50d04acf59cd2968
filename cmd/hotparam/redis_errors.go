package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
)

// Names of Redis users in docs/REDIS.md.
const (
	readerUser   = "hotparam-reader"
	operatorUser = "hotparam-operator"
	writerUser   = "hotparam-writer"
	historyUser  = "hotparam-history"
)

// explain adds advice to an error of Redis. The user is the one in docs/REDIS.md with the needed
// rights.
func (p *redisPlace) explain(err error, user string) error {
	switch {
	case errors.Is(err, hotkeys.ErrNoControl):
		return fmt.Errorf("%w: hotparam list --controls shows which have one", err)
	case errors.Is(err, hotkeys.ErrTooManyControls):
		return fmt.Errorf("%w: hotparam list --controls", err)
	case hotkeys.IsDenied(err):
		return fmt.Errorf("%w: use a user of Redis with the rights of %s (docs/REDIS.md), by --redis or HOTPARAM_REDIS", err, user)
	}
	return noRedisError(err, p.redis.URL)
}

// pingRedis returns an error with advice if the Redis at a URL does not answer in time.
func pingRedis(ctx context.Context, client redis.UniversalClient, url string) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return noRedisError(err, url)
	}
	return nil
}

// noRedisError adds advice to an error of a Redis that does not answer at url. If url is "", a
// Redis could not be started.
func noRedisError(err error, url string) error {
	if url == "" {
		return unreachableError(fmt.Errorf("%w: install redis-server (Debian: apt-get install redis-server), or set --redis or HOTPARAM_REDIS", err))
	}
	return unreachableError(fmt.Errorf("%w (is Redis running at %s? set --redis or HOTPARAM_REDIS)", err, redacted(url)))
}
