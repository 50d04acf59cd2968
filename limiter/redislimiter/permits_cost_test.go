//go:build !race

// These tests use one goroutine and so have no races. They run only without the race detector.

package redislimiter

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// However many permits are taken, Redis has a few thousand entries, and all permits are free again
// in time.
func TestPermitsEntriesAreBounded(t *testing.T) {
	client := clientAt(t, testenv.Redis(t).URL())
	ctx := t.Context()
	p := permitsOf(t, client, nil)
	const calls, all = 4_000, 12_000
	must(t, p.SetRate(ctx, permitRate(all, time.Hour)))
	for i := range calls {
		took, _, err := p.takePermits(ctx, "", 3, false, nil)
		must(t, err)
		if !took {
			t.Fatalf("call %d of %d took nothing", i, calls)
		}
	}
	if n := client.ZCard(ctx, p.keys[1]).Val(); n > 2_100 {
		t.Errorf("%d entries of %d calls", n, calls)
	}
	left(t, p, 0)
	must(t, p.Release(ctx, all-5))
	left(t, p, all-5)
}

// The cost of a call to Redis does not grow with the number of takes, even if the previous version
// left an entry for each take. With a hundred times as many takes, a call runs no more commands,
// removes no more entries, and takes less than twenty times as long.
func TestPermitsCostIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	client := clientAt(t, testenv.Redis(t).URL()).(*redis.Client)
	ctx := t.Context()
	cost := func(entries int, over bool, call func(p *sharedPermits)) (commands, removed, usec int64) {
		p := permitsOf(t, client, func(c *PermitsConfig) { c.Name = fmt.Sprint(entries, over) })
		must(t, p.SetRate(ctx, permitRate(int64(entries), time.Hour)))
		takesNow(t, p, 1, true)
		epoch := client.HGet(ctx, p.keys[0], "epoch").Val()
		usec = 1 << 62
		for range 5 { // the fastest of five, since other work shares the machine
			must(t, client.Del(ctx, p.keys[1]).Err())
			now := client.Time(ctx).Val().UnixMicro()
			all := []redis.Z{{Score: -float64(entries), Member: "+" + epoch}}
			for i := range entries {
				at := now - int64(i)
				if over && i > 0 {
					at -= time.Hour.Microseconds()
				}
				all = append(all, redis.Z{Score: float64(at), Member: fmt.Sprint("1 ", i)})
			}
			for len(all) > 0 {
				n := min(len(all), 10_000)
				must(t, client.ZAdd(ctx, p.keys[1], all[:n]...).Err())
				all = all[n:]
			}
			before := client.ZCard(ctx, p.keys[1]).Val()
			must(t, client.ConfigResetStat(ctx).Err())
			call(p)
			var took int64
			commands, took = scriptStats(t, client)
			usec = min(usec, took)
			removed = max(removed, before-client.ZCard(ctx, p.keys[1]).Val())
		}
		return commands, removed, usec
	}
	for name, test := range map[string]struct {
		over bool
		call func(p *sharedPermits)
	}{
		"take what is over": {true, func(p *sharedPermits) { takesNow(t, p, 1, true) }},
		"denied":            {false, func(p *sharedPermits) { takesNow(t, p, 1, false) }},
		"denied many":       {false, func(p *sharedPermits) { takesNow(t, p, 1000, false) }},
		"available":         {true, func(p *sharedPermits) { _, err := p.AvailablePermits(ctx); must(t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			few, _, quick := cost(1_000, test.over, test.call)
			many, removed, slow := cost(100_000, test.over, test.call)
			t.Logf("1,000 entries: %d commands, %d µs; 100,000: %d commands, %d removed, %d µs", few, quick, many, removed, slow)
			if many > few+25 || removed > 1_001 || slow > 20*max(quick, 50) {
				t.Errorf("1,000 entries: %d commands, %d µs; 100,000: %d commands, %d removed, %d µs", few, quick, many, removed, slow)
			}
		})
	}
}

// scriptStats returns the number of commands since the statistics were reset, and the run time of
// scripts in µs.
func scriptStats(t *testing.T, client *redis.Client) (commands, usec int64) {
	t.Helper()
	for line := range strings.Lines(client.Info(t.Context(), "commandstats").Val()) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":calls=")
		if !ok {
			continue
		}
		calls, rest, _ := strings.Cut(rest, ",usec=")
		n, err := strconv.ParseInt(calls, 10, 64)
		must(t, err)
		commands += n
		if name == "cmdstat_evalsha" || name == "cmdstat_eval" {
			took, _, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseInt(took, 10, 64)
			must(t, err)
			usec += n
		}
	}
	return commands, usec
}
