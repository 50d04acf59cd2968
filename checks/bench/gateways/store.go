package gateways

import (
	"context"
	"regexp"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// calls returns how often a command was called at a Redis.
func calls(ctx context.Context, addr, command string) (n int, err error) {
	err = testenv.WithRedis(addr, nil, func(c *redis.Client) error {
		text, err := c.Info(ctx, "commandstats").Bytes()
		n = sum(text, regexp.MustCompile(`(?m)^cmdstat_`+command+`:calls=(\d+)`))
		return err
	})
	return n, err
}

// sum returns the sum of the first group of all matches of a pattern.
func sum(text []byte, pattern *regexp.Regexp) (all int) {
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		value, _ := strconv.ParseFloat(string(match[1]), 64) // the pattern matches only numbers
		all += int(value)
	}
	return all
}
