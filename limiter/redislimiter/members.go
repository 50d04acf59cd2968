package redislimiter

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/loglimit"
)

//go:embed lua/members_beat.lua
var membersBeatLua string

var membersBeat = newScript(membersBeatLua).of("ZCARD")

// MembersConfig says which fleet a [Members] belongs to, and as whom.
type MembersConfig struct {
	// Namespace keeps fleets apart: [A-Za-z0-9_-]+. Required.
	Namespace string
	// Name is this instance's, at most 256 bytes. Required. Two processes of one name
	// are two members all the same.
	Name string
	// Every is how often the instance tells that it lives, and learns how many do.
	// Default 500 ms; at least 10 ms, at most 10 s.
	Every time.Duration
	// Dead is after how much silence it counts as dead for the others. Default four
	// times Every; at least twice, and at most 1 min.
	Dead time.Duration
	// Timeout bounds each call to Redis. Default: Every.
	Timeout time.Duration
	// OnChange is called with each new count, by the goroutine of Run; it must not
	// block. nil: nobody is told.
	OnChange func(n int)
	// Logger gets one line when an outage begins and one when it ends. Default: discard.
	Logger *slog.Logger
}

// longestDead bounds MembersConfig.Dead: a member that is said to live longer is of
// before Redis's clock was set back.
const longestDead = time.Minute

func (c MembersConfig) withDefaults() MembersConfig {
	if c.Every == 0 {
		c.Every = 500 * time.Millisecond
	}
	if c.Dead == 0 {
		c.Dead = 4 * c.Every
	}
	if c.Timeout == 0 {
		c.Timeout = c.Every
	}
	if c.OnChange == nil {
		c.OnChange = func(int) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c MembersConfig) validate() error {
	switch {
	case !hotparam.ValidNamespace(c.Namespace):
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

// Members counts the live instances of a fleet, so that each can take its share of a
// limit: all send heartbeats into one sorted set, on Redis's clock. With the defaults
// a join or an orderly leave is known to all within 0.5 s, a death within 2.5 s. It is
// safe for concurrent use.
//
// Each instance costs Redis one small script per heartbeat, whatever the traffic. In
// Redis it needs the rights evalsha, eval, time, zadd, zrem, zcard, zremrangebyscore
// and pexpire, for the key hotparam:{namespace}:members.
type Members struct {
	cfg    MembersConfig
	client redis.UniversalClient
	key    string
	member string // name and incarnation

	mu    sync.Mutex
	stats MembersStats

	// Of Run's goroutine:
	logged  bool           // that the one that lasts began
	lines   loglimit.Limit // about outages
	joined  bool           // some heartbeat was answered
	settles time.Time      // until then others may not have come back, and the count does not fall
}

// MembersStats tells how a [Members] fares.
type MembersStats struct {
	Count     int    // as of the last answer; 0: there was none yet
	Connected bool   // the last heartbeat was answered
	Failures  uint64 // heartbeats that were not answered
	Rejoins   uint64 // times that Redis had lost this instance: it was silent for too long, or Redis lost its state
	Healed    uint64 // times that the fleet's key was of a foreign type, and began anew
}

// NewMembers makes the count of a fleet. The caller runs it, and closes the client, whose
// options must have ContextTimeoutEnabled.
func NewMembers(client redis.UniversalClient, c MembersConfig) (*Members, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := checkClient(client); err != nil {
		return nil, fmt.Errorf("redislimiter: members: %w", err)
	}
	return &Members{cfg: c, client: client, key: "hotparam:{" + c.Namespace + "}:members", member: c.Name + " " + incarnation()}, nil
}

// incarnation tells one start of a process from all others.
func incarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Count is how many instances live, this one included; 0: not known yet. While Redis
// is away it is the last that was known.
func (m *Members) Count() int { return m.Stats().Count }

// Stats tells how it fares.
func (m *Members) Stats() MembersStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Run sends heartbeats until ctx ends, then leaves the fleet and returns nil. It must
// not run twice at a time.
func (m *Members) Run(ctx context.Context) error {
	ticker := time.NewTicker(m.cfg.Every)
	defer ticker.Stop()
	defer m.leave(ctx)
	for {
		m.beat(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (m *Members) beat(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	script := call{script: membersBeat, keys: []string{m.key}, args: []any{m.member, m.cfg.Dead.Milliseconds(), longestDead.Milliseconds()}}
	_ = run(limited, m.client, &script) // its command has the error
	m.cured(&script)
	answer, err := script.cmd.Int64Slice()
	if err == nil && len(answer) != 2 {
		err = fmt.Errorf("unexpected answer %v", answer)
	}
	switch {
	case err == nil:
		m.heard(int(answer[0]), answer[1] == 1, time.Now())
	case ctx.Err() == nil:
		m.failed(err)
	}
}

// cured counts the keys of a foreign type that a heartbeat has met.
func (m *Members) cured(c *call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Healed += uint64(c.healed)
}

// heard takes a count. Where Redis has lost this instance it has likely lost the others
// too, who come back within a heartbeat: until then a lower count would give each too
// large a share.
func (m *Members) heard(n int, isNew bool, now time.Time) {
	rejoined := isNew && m.joined
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
	m.mu.Unlock()
	if back && m.logged {
		m.logged = false
		m.cfg.Logger.Info("live instances: Redis answers again", "instances", inForce)
	}
	if changed {
		m.cfg.OnChange(n)
	}
}

func (m *Members) failed(err error) {
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

// outageRate is how many outages are logged, as where Redis flaps each heartbeat may
// begin one.
var outageRate = loglimit.Rate{Burst: 1, Every: 15 * time.Second}

// leave tells the others at once that this instance is gone.
func (m *Members) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.Timeout)
	defer cancel()
	if err := m.client.ZRem(ctx, m.key, m.member).Err(); err != nil {
		m.cfg.Logger.Warn("live instances: could not leave: the others count this one until it seems dead", "error", err, "after", m.cfg.Dead)
	}
}
