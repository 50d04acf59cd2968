package redislimiter

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/rules"
)

//go:embed lua/members_beat.lua
var membersBeatLua string

//go:embed lua/members_leave.lua
var membersLeaveLua string

var (
	membersBeat  = newScript(membersBeatLua).withReads("ZCARD", "HLEN", "HLEN")
	membersLeave = newScript(membersLeaveLua).withReads("ZCARD", "HLEN", "HLEN")
)

// MembersConfig configures a [Members].
type MembersConfig struct {
	// Namespace keeps fleets apart: [A-Za-z0-9_-]+. Required.
	Namespace string
	// Name is the name of this instance, at most 256 bytes. Required. Two processes with one name
	// still count as two members.
	Name string
	// Every is the interval of heartbeats. Each heartbeat also returns the current count. Default
	// 500 ms; at least 10 ms, at most 10 s.
	Every time.Duration
	// Dead is how long an instance may be silent before the others stop counting it. Default
	// four times Every; at least twice Every, at most 1 min.
	Dead time.Duration
	// Timeout bounds each call to Redis. Default: Every.
	Timeout time.Duration
	// OnChange is called with each new count, by the goroutine of Run; it must not block. A
	// nil OnChange disables it.
	OnChange func(n int)
	// Shares holds this instance's part of shared limits. Nil means that it holds nothing, as in
	// a program that only counts.
	Shares Shares
	// Assumed returns the number of instances to assume until the count is known. The number is
	// only reported, in the log and in MembersStats. Nil means one.
	Assumed func() int
	// Logger gets one line when an outage begins and one when it ends, and one when the
	// number of instances is assumed. Default: discard.
	Logger *slog.Logger
}

// longestDead bounds MembersConfig.Dead. A member that claims a longer life dates from before
// Redis's clock was set back.
const longestDead = time.Minute

func (c MembersConfig) withDefaults() MembersConfig {
	c.Every = cmp.Or(c.Every, 500*time.Millisecond)
	c.Dead = cmp.Or(c.Dead, 4*c.Every)
	c.Timeout = cmp.Or(c.Timeout, c.Every)
	if c.OnChange == nil {
		c.OnChange = func(int) {}
	}
	if c.Assumed == nil {
		c.Assumed = func() int { return 1 }
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c MembersConfig) validate() error {
	switch {
	case !rules.ValidNamespace(c.Namespace):
		return fmt.Errorf("MembersConfig.Namespace %q: want one or more of A-Z a-z 0-9 _ -", c.Namespace)
	case c.Name == "" || len(c.Name) > 256:
		return fmt.Errorf("MembersConfig.Name %.32q: want 1 to 256 bytes", c.Name)
	case c.Every < 10*time.Millisecond || c.Every > 10*time.Second:
		return fmt.Errorf("MembersConfig.Every %v: want 10ms to 10s", c.Every)
	case c.Dead < 2*c.Every || c.Dead > longestDead:
		return fmt.Errorf("MembersConfig.Dead %v: want twice Every, %v, to %v", c.Dead, 2*c.Every, longestDead)
	case c.Timeout < 0:
		return fmt.Errorf("MembersConfig.Timeout %v: must not be negative", c.Timeout)
	}
	return nil
}

// Members counts the live instances of a fleet, so that each can take its share of a limit. All
// of them send heartbeats to one sorted set, timed by Redis's clock. With the defaults all
// instances notice a join or an orderly leave within 0.5 s, and a crash within 2.5 s. It is safe
// for concurrent use. See members_share.go for how shares are handed over.
//
// Each heartbeat costs Redis one small script, whatever the traffic. The client needs the rights
// evalsha, eval, time, zadd, zrem, zcard, zremrangebyscore, pexpire, hmget, hset, hlen, hgetall
// and hdel, for the key hotparam:{namespace}:members and all keys with that prefix.
type Members struct {
	cfg    MembersConfig
	client redis.UniversalClient
	key    string
	member string // name and incarnation

	mu    sync.Mutex
	stats MembersStats

	// The following fields belong to Run's goroutine.
	logged  bool           // whether the current outage was logged
	lines   loglimit.Limit // limits the log lines about outages
	joined  bool           // whether a heartbeat has been answered
	settles time.Time      // end of the time in which others may still be rejoining, and the count must not fall
	share   sharing
}

// MembersStats is a snapshot of a [Members].
type MembersStats struct {
	Count     int    // number as of the last reply; 0 before the first one
	Assumed   int    // number of instances that is assumed; 0 while the count is known, or is asked for
	Settled   bool   // whether it is known with how much this instance began: until then its shares only earn
	Connected bool   // whether the last heartbeat was answered
	Failures  uint64 // heartbeats that were not answered
	Rejoins   uint64 // times that this instance was missing in Redis: it was silent for too long, or Redis lost its state
	Healed    uint64 // times that a key of the fleet was of a foreign type and was deleted
	Inherited uint64 // handovers of other instances that this one has claimed
}

// NewMembers returns a Members. The caller calls Run and closes the client, whose options must
// have ContextTimeoutEnabled.
func NewMembers(client redis.UniversalClient, c MembersConfig) (*Members, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := checkClient(client); err != nil {
		return nil, fmt.Errorf("redislimiter: members: %w", err)
	}
	return &Members{cfg: c, client: client, key: "hotparam:{" + c.Namespace + "}:members", member: c.Name + " " + incarnation(), share: sharing{started: time.Now()}}, nil
}

// incarnation returns an identifier of this start of the process.
func incarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Count returns the number of live instances, this one included, or 0 while it is unknown. While
// Redis is unavailable it returns the last known number.
func (m *Members) Count() int { return m.Stats().Count }

// Stats returns a snapshot.
func (m *Members) Stats() MembersStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Run sends heartbeats until ctx ends, then removes this instance from the fleet and returns
// nil. Only one Run may be in progress at a time.
func (m *Members) Run(ctx context.Context) error {
	defer m.leaveFleet(ctx)
	m.share = sharing{started: time.Now()}
	m.setSettled(false)
	m.beat(ctx)
	for range base.Ticks(ctx, m.cfg.Every) {
		m.beat(ctx)
	}
	return nil
}

func (m *Members) beat(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	script := call{script: membersBeat, keys: m.keys(), args: append([]any{m.member, m.cfg.Dead.Milliseconds(), longestDead.Milliseconds()}, m.share.args(m.cfg.Every)...)}
	_ = run(limited, m.client, &script) // its command has the error
	m.addHealed(&script)
	answer, err := readBeat(script.cmd)
	switch {
	case err == nil:
		rejoined := m.recordCount(answer.count, answer.isNew, time.Now())
		m.updateShare(answer, rejoined, time.Now())
	case ctx.Err() == nil:
		m.recordFailure(err)
		m.assume(time.Now())
	}
}

// keys returns the keys of the fleet.
func (m *Members) keys() []string { return []string{m.key, m.key + ":share", m.key + ":handover"} }

// addHealed counts the keys of a foreign type that c deleted.
func (m *Members) addHealed(c *call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Healed += uint64(c.healed)
}

// recordCount records a count. If Redis lost this instance, it probably lost the others too, and
// they rejoin within a heartbeat. Until then a lower count would give each of them too large a
// share. recordCount reports whether Redis had lost this instance.
func (m *Members) recordCount(n int, isNew bool, now time.Time) (rejoined bool) {
	rejoined = isNew && m.joined
	if rejoined {
		m.settles = now.Add(m.cfg.Dead)
	}
	m.joined = true
	m.mu.Lock()
	back := !m.stats.Connected && m.stats.Failures > 0
	m.stats.Connected = true
	if rejoined {
		m.stats.Rejoins++
	}
	changed := n > m.stats.Count || n < m.stats.Count && !now.Before(m.settles)
	if changed {
		m.stats.Count = n
	}
	inForce := m.stats.Count
	m.stats.Assumed = 0
	m.mu.Unlock()
	if back && m.logged {
		m.logged = false
		m.cfg.Logger.Info("live instances: Redis answers again", "instances", inForce)
	}
	if changed {
		m.cfg.OnChange(n)
	}
	return rejoined
}

func (m *Members) recordFailure(err error) {
	m.mu.Lock()
	first := m.stats.Connected || m.stats.Failures == 0
	m.stats.Connected = false
	m.stats.Failures++
	n := m.stats.Count
	m.mu.Unlock()
	if !first {
		return
	}
	unlogged, ok := m.lines.Allow(outageRate, time.Now())
	if !ok {
		return
	}
	m.cfg.Logger.Warn("live instances: Redis does not answer: the last count stays in force", "error", err, "instances", n, "unlogged", unlogged)
	m.logged = true
}

// outageRate limits the outages that are logged. If Redis flaps, each heartbeat may begin one.
var outageRate = loglimit.LineRate{Burst: 1, Every: 15 * time.Second}

// leaveFleet removes this instance, so that the others need not wait until it counts as dead, and
// leaves its share to another instance.
func (m *Members) leaveFleet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.Timeout)
	defer cancel()
	m.joined = false // it leaves itself, so a later Run must not conclude that Redis lost it
	script := call{script: membersLeave, keys: m.keys(), args: []any{m.member, m.handOver(), handoverLasts.Milliseconds(), maxHandovers}}
	if err := run(ctx, m.client, &script); err != nil {
		m.cfg.Logger.Warn("live instances: could not leave: the others count this one until it seems dead", "error", err, "after", m.cfg.Dead)
	}
}
