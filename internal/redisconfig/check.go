// Package redisconfig checks the fields shared by the configs of all readers and writers of a
// namespace in Redis.
package redisconfig

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// namespaceForm is the form of a namespace, in words.
const namespaceForm = "want one or more of A-Z a-z 0-9 _ -"

// Namespace returns an error that describes the form of a namespace, or nil if namespace is
// valid.
func Namespace(namespace string) error {
	if rules.ValidNamespace(namespace) {
		return nil
	}
	return fmt.Errorf("namespace %q: %s", namespace, namespaceForm)
}

// NamedDuration is a field of a config that must not be negative.
type NamedDuration struct {
	Name   string
	Length time.Duration
}

// Check checks the common fields of a config and its client. Errors begin with config, the name
// of the config's type.
func Check(config, namespace string, client redis.UniversalClient, spans ...NamedDuration) error {
	if !rules.ValidNamespace(namespace) {
		return fmt.Errorf("%s.Namespace %q: %s", config, namespace, namespaceForm)
	}
	for _, s := range spans {
		if s.Length < 0 {
			return fmt.Errorf("%s.%s %v must not be negative", config, s.Name, s.Length)
		}
	}
	if client == nil {
		return errors.New("no Redis client")
	}
	return nil
}
