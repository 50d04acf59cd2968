package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redis checks Redis's clock and memory, and reports whether it answers.
func (x *examination) redis(ctx context.Context) bool {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_ = x.Client.Ping(call).Err() // connects, so that the connection's time is not in the clock comparison
	before := time.Now()
	serverTime, err := x.Client.Time(call).Result()
	took := time.Since(before)
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		x.add("redis", Problem, fmt.Sprintf("Redis at %s does not answer: %v", x.Where, plainError(err)), x.mendRedis(err))
		return false
	}
	x.add("redis", OK, fmt.Sprintf("Redis at %s answers in %v", x.Where, took.Round(10*time.Microsecond)), "")
	if err == nil {
		x.ownClock(before, serverTime, took)
	}
	x.redisMemory(ctx)
	return true
}

// plainError returns err, without the text before a WRONGPASS or NOAUTH error of Redis.
func plainError(err error) error {
	for _, words := range []string{"WRONGPASS", "NOAUTH"} {
		if _, behind, found := strings.Cut(err.Error(), words); found {
			return errors.New(words + behind)
		}
	}
	return err
}

func (x *examination) mendRedis(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"), strings.Contains(text, "invalid password"):
		return "correct the user and the password: aggregator.redis.username and password_file or password_env, or HOTPARAM_REDIS"
	case strings.Contains(text, "x509"), strings.Contains(text, "tls:"), strings.Contains(text, "certificate"):
		return "correct aggregator.redis.ca, or begin its URL with rediss:// where the server wants TLS"
	case errors.Is(err, context.DeadlineExceeded):
		return "is a firewall in between, or is it another port? Try redis-cli with the same URL"
	}
	return "start Redis, or correct aggregator.redis, --redis or HOTPARAM_REDIS"
}

// ownClock compares this machine's clock with that of Redis, which answered at an unknown instant
// during the call.
func (x *examination) ownClock(before, answered time.Time, took time.Duration) {
	offset := before.Add(took / 2).Sub(answered)
	if offset.Abs()-took/2 > maxOffset {
		x.add("clocks", Problem, fmt.Sprintf("the clock of this machine is %s of Redis's", offsetWords(offset)), "have both follow NTP (chrony or systemd-timesyncd)")
	}
}

func offsetWords(offset time.Duration) string {
	direction := "ahead"
	if offset < 0 {
		direction = "behind that"
	}
	return fmt.Sprintf("%v %s", offset.Abs().Round(10*time.Millisecond), direction)
}

// redisMemory checks whether Redis is about to refuse writes or to evict. It needs the right to
// call INFO.
func (x *examination) redisMemory(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := x.Client.Info(call, "memory").Result()
	if err != nil {
		return // rights reports a refused write
	}
	used, limit := infoNumber(text, "used_memory"), infoNumber(text, "maxmemory")
	policy := infoField(text, "maxmemory_policy")
	switch {
	case limit > 0 && float64(used) >= nearlyFull*float64(limit):
		x.add("memory", Problem, fmt.Sprintf("Redis uses %s of its %s of memory (maxmemory)", megabytes(used), megabytes(limit)), "raise maxmemory, or give hotparam a Redis of its own: it needs some megabytes")
	case limit > 0 && strings.HasPrefix(policy, "allkeys-"):
		x.add("memory", Warning, "Redis evicts keys without an expiry when it is full (maxmemory-policy "+policy+")", "use noeviction or a volatile- policy: an evicted hot key is not limited until it is written again")
	}
}

func infoField(text, name string) string {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+":"); found {
			return value
		}
	}
	return ""
}

func infoNumber(text, name string) int64 {
	n, _ := strconv.ParseInt(infoField(text, name), 10, 64) // 0 if the field is missing
	return n
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
