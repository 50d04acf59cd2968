package main

import (
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/redisconfig"
)

// redisFlags are the flags of commands that read a namespace in Redis.
type redisFlags struct{ config, redis, namespace string }

func (f *redisFlags) register(flags *pflag.FlagSet) {
	// The values of variables are not flag defaults, since help would then show a password.
	flags.StringVar(&f.config, "config", "", "rules `file` with the namespace and Redis")
	flags.StringVar(&f.redis, "redis", "", "Redis `URL` or host:port (default "+config.Aggregator{}.WithDefaults().Redis.URL+")")
	flags.StringVar(&f.namespace, "namespace", "", "`name` of the fleet, as in the rules file (default "+config.DefaultNamespace+")")
}

// redisPlace is a namespace in a Redis.
type redisPlace struct {
	redis     config.Redis
	namespace string
	file      *config.File // nil if none was named
}

// place returns the place that the flags name, with defaults from the file.
func (f *redisFlags) place(w io.Writer) (redisPlace, error) {
	p := redisPlace{namespace: config.DefaultNamespace}
	if f.config != "" {
		file, err := loadConfig(w, f.config)
		if err != nil {
			return p, err
		}
		p.file, p.redis, p.namespace = file, file.Aggregator.Redis, file.Rules.Namespace
	}
	p.redis = config.Aggregator{Redis: p.redis}.WithDefaults().Redis
	override(&p.redis.URL, f.redis)
	override(&p.namespace, f.namespace)
	if err := redisconfig.Namespace(p.namespace); err != nil {
		return p, usageError(fmt.Errorf("--namespace or HOTPARAM_NAMESPACE: %w", err))
	}
	return p, nil
}

// connect returns the place that the flags name and a client, which the caller must close.
func (f *redisFlags) connect(w io.Writer) (redisPlace, redis.UniversalClient, error) {
	p, err := f.place(w)
	if err != nil {
		return p, nil, err
	}
	client, err := p.client()
	return p, client, err
}

// client returns a client, which the caller must close.
func (p *redisPlace) client() (redis.UniversalClient, error) {
	client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig(p.redis))
	if err != nil {
		return nil, usageError(err)
	}
	return client, nil
}
