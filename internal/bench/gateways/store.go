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

// store is a Redis for one service alone.
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

// info returns a section of Redis's INFO.
func (s *store) info(ctx context.Context, section string) ([]byte, error) {
	text, err := s.client.Info(ctx, section).Bytes()
	if err != nil {
		return nil, fmt.Errorf("INFO %s: %w", section, err)
	}
	return text, nil
}

// process returns the id of its process.
func (s *store) process(tb testing.TB) int {
	tb.Helper()
	text, err := s.info(tb.Context(), "server")
	if err != nil {
		tb.Fatal(err)
	}
	return sum(text, processID)
}

// calls returns how many calls of a command it has had.
func (s *store) calls(ctx context.Context, command string) (int, error) {
	text, err := s.info(ctx, "commandstats")
	return sum(text, regexp.MustCompile(`(?m)^cmdstat_`+command+`:calls=(\d+)`)), err
}

var processID = regexp.MustCompile(`(?m)^process_id:(\d+)`)

// sum adds up the numbers that are the first group of a pattern, wherever it matches.
func sum(text []byte, pattern *regexp.Regexp) (sum int) {
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		value, _ := strconv.ParseFloat(string(match[1]), 64) // the pattern has numbers alone
		sum += int(value)
	}
	return sum
}
