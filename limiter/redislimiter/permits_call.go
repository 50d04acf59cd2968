package redislimiter

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter/permits"
)

var (
	//go:embed lua/permits_head.lua
	permitsHeadLua string
	//go:embed lua/permits_set.lua
	permitsSetLua string
	//go:embed lua/permits_take.lua
	permitsTakeLua string
	//go:embed lua/permits_release.lua
	permitsReleaseLua string
	//go:embed lua/permits_expire.lua
	permitsExpireLua string

	permitsSet     = permitsScript(permitsSetLua)
	permitsTake    = permitsScript(permitsTakeLua)
	permitsRelease = permitsScript(permitsReleaseLua)
	permitsExpire  = permitsScript(permitsExpireLua)
	// permitsConfig returns the rate, if one is set.
	permitsConfig = permitsScript("if not config() then return {} end\nreturn redis.call('HMGET', CONFIG, 'rate', 'per', 'client', 'keep')\n")
	// permitsAvailable returns the number of available permits, or -1 if no rate is set.
	permitsAvailable = permitsScript("local c = config()\nif not c then return -1 end\nreturn math.max(0, c.rate - open(c).used)\n")
	// permitsDelete returns 1 if a rate was set.
	permitsDelete = permitsScript("local was = config()\nredis.call('DEL', CONFIG, SHARED, OWN)\nreturn was and 1 or 0\n")
)

func permitsScript(body string) *script {
	return newScript(permitsHeadLua, body).withReads("HMGET rate", "ZSCORE 0", "ZSCORE 0")
}

// runScript runs a script, or fails at once while Redis is unavailable.
func (p *sharedPermits) runScript(ctx context.Context, script *script, args ...any) *redis.Cmd {
	start := time.Now()
	refused := redis.NewCmd(ctx)
	if err := ctx.Err(); err != nil {
		refused.SetErr(err)
		return refused
	}
	if !p.gate.admits(ctx, p.keys[1]) {
		refused.SetErr(ErrUnavailable)
		return refused
	}
	limited, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	c := call{script: script, keys: p.keys, args: args}
	_ = run(limited, p.client, &c) // its command has the error
	cmd := c.cmd.Cmd
	ctxErr := ended(ctx)
	p.gate.recordOutcome(limited, p.keys[1], start, cmd.Err(), ctxErr != nil && time.Since(start) < p.cfg.Timeout/2)
	if cmd.Err() != nil && ctxErr != nil {
		cmd.SetErr(ctxErr)
	}
	return cmd
}

// The replies of permitsTake.
const (
	permitsTaken   = 1
	permitsDenied  = 0
	permitsUnset   = -1
	permitsTooMany = -2
)

// takePermits implements [permitline.Line].Take. After an error nothing is taken, as far as Redis can be
// reached.
func (p *sharedPermits) takePermits(ctx context.Context, _ string, n int64, waits bool, before []int64) (took bool, wait time.Duration, err error) {
	id := p.id + strconv.FormatUint(p.taken.Add(1), 36)
	args := make([]any, 0, 3+len(before))
	args = append(args, n, id, 0)
	if waits {
		args[2] = 1
	}
	for _, b := range before {
		args = append(args, b)
	}
	reply, err := p.runScript(ctx, permitsTake, args...).Int64Slice()
	if err == nil && (len(reply) != 2 || reply[0] == permitsDenied && (reply[1] < 0 || reply[1] > math.MaxInt64/int64(time.Microsecond))) {
		err = fmt.Errorf("unexpected answer %v", reply)
	}
	if err != nil {
		p.undo(ctx, n, id, err)
		if gone := ended(ctx); gone != nil {
			return false, 0, gone
		}
		return false, 0, p.wrapError("acquire", err)
	}
	switch reply[0] {
	case permitsUnset:
		return false, 0, permits.ErrRateNotSet
	case permitsTooMany:
		return false, 0, fmt.Errorf("%w: %d, and it has %d", permits.ErrTooMany, n, reply[1])
	}
	return reply[0] == permitsTaken, time.Duration(reply[1]) * time.Microsecond, nil
}

// undo releases permits that a call without a known outcome may have taken.
func (p *sharedPermits) undo(ctx context.Context, n int64, id string, err error) {
	if isAnswer(err) {
		return
	}
	p.runScript(context.WithoutCancel(ctx), permitsRelease, 0, strconv.FormatInt(n, 10)+" "+id)
}
