package gateways

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// store is a Redis that only one service uses.
type store struct {
	server *testenv.RedisServer
	client *redis.Client
}

func openStore(tb testing.TB) *store {
	tb.Helper()
	server := testenv.Redis(tb)
	s := &store{server: server, client: redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1})}
	tb.Cleanup(func() { s.client.Close() })
	return s
}

// calls returns how often a command was called.
func (s *store) calls(ctx context.Context, command string) (int, error) {
	text, err := s.client.Info(ctx, "commandstats").Bytes()
	if err != nil {
		return 0, fmt.Errorf("INFO: %w", err)
	}
	return sum(text, regexp.MustCompile(`(?m)^cmdstat_`+command+`:calls=(\d+)`)), nil
}

// sum returns the sum of the first group of all matches of a pattern.
func sum(text []byte, pattern *regexp.Regexp) (all int) {
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		value, _ := strconv.ParseFloat(string(match[1]), 64) // the pattern matches only numbers
		all += int(value)
	}
	return all
}
