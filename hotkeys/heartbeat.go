package hotkeys

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
)

//go:embed lua/heartbeat.lua
var heartbeatLua string

var heartbeatScript = redis.NewScript(heartbeatLua)

// HeartbeatConfig configures a [Heartbeat]. Namespace and Member are required.
type HeartbeatConfig struct {
	// Namespace is the namespace of the fleet.
	Namespace string
	// Member returns this process's report about itself. It is called before each heartbeat, by
	// one goroutine, and must be quick. Dropped, Displaced, Lost and Arrived are totals since the
	// start of the process; heartbeats have the part of the last minute. Heard is ignored. If
	// OffsetKnown is not set, the offset that heartbeats measure is used.
	Member func() published.Member
	// Every is the interval of heartbeats. Default 1 s.
	Every time.Duration
	// Timeout bounds each call to Redis. Default 500 ms.
	Timeout time.Duration
	// Logger receives a line if heartbeats are not permitted, and one when members begin and end
	// to have different rules. If nil, nothing is logged.
	Logger *slog.Logger
}

// Heartbeat writes a process's report about itself to Redis, about once a second. If that fails,
// for instance without the right to write, other processes do not see the report, and nothing
// else changes. It is safe for concurrent use.
type Heartbeat struct {
	cfg    HeartbeatConfig
	client redis.UniversalClient
	layout published.Layout
	id     string // identifies this start of the process
	kick   chan struct{}
	lines  loglimit.Limit

	// Used by Run's goroutine only:
	dropped, displaced, lost, arrived lastMinute

	former string // version of the rules in the last heartbeat that was written
	differ differing

	mu     sync.Mutex
	stats  HeartbeatStats
	offset offsetEstimate
}

// HeartbeatStats are a heartbeat's state and counters.
type HeartbeatStats struct {
	Connected bool          // the last heartbeat was written
	Denied    bool          // the last one was not permitted
	Sent      uint64        // heartbeats that were written
	Failures  uint64        // heartbeats that were not written
	Offset    time.Duration // time that the local clock is ahead of Redis's, if OffsetKnown

	OffsetKnown bool
	// Versions are the versions of the rules that members have now, this one included, sorted.
	// They are nil while Redis is unavailable, or heartbeats are not permitted.
	Versions []string
}

// versionLife is how long a version of the rules counts as in use after the last heartbeat with
// it. A heartbeat may be missed.
const versionLife = 2500 * time.Millisecond

// deniedEvery is the interval of tries while heartbeats are not permitted.
const deniedEvery = 30 * time.Second

// NewHeartbeat returns a Heartbeat. It makes no call; the caller closes the client, once Run
// has returned.
func NewHeartbeat(client redis.UniversalClient, cfg HeartbeatConfig) (*Heartbeat, error) {
	if err := redisconfig.Check("HeartbeatConfig", cfg.Namespace, client, redisconfig.NamedDuration{Name: "Every", Length: cfg.Every}, redisconfig.NamedDuration{Name: "Timeout", Length: cfg.Timeout}); err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	if cfg.Member == nil {
		return nil, errors.New("heartbeat: no Member")
	}
	cfg.Every = cmp.Or(cfg.Every, time.Second)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Logger = cmp.Or(cfg.Logger, noLog)
	return &Heartbeat{cfg: cfg, client: client, layout: published.NewLayout(cfg.Namespace), id: newID(), kick: make(chan struct{}, 1)}, nil
}

// Run writes heartbeats until ctx ends, then removes this process from the members, and returns
// nil. It is called once.
func (h *Heartbeat) Run(ctx context.Context) error {
	defer h.leave(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-h.kick:
		}
		h.beat(ctx)
		wait := h.cfg.Every
		if h.Stats().Denied {
			wait = deniedEvery
		}
		timer.Reset(wait)
	}
}

// Now makes the next heartbeat come at once, for example after the rules have changed.
func (h *Heartbeat) Now() { base.Notify(h.kick) }

func (h *Heartbeat) beat(ctx context.Context) {
	m := h.cfg.Member()
	if !m.OffsetKnown {
		s := h.Stats()
		m.Offset, m.OffsetKnown = s.Offset, s.OffsetKnown
	}
	began := time.Now()
	m.Dropped, m.Lost, m.Arrived = h.dropped.add(began, m.Dropped), h.lost.add(began, m.Lost), h.arrived.add(began, m.Arrived)
	m.Displaced = h.displaced.add(began, m.Displaced)
	clock, versions, err := h.send(ctx, &m)
	ended := time.Now()
	if ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.Connected, h.stats.Denied, h.stats.Versions = err == nil, IsDenied(err), versions
	if err == nil {
		h.stats.Sent++
		h.offset.add(began, ended, clock)
		h.stats.Offset, h.stats.OffsetKnown = h.offset.best()
		h.differ.compare(h.cfg.Logger, m.RulesVersion, versions, ended)
		return
	}
	h.stats.Failures++
	if h.stats.Denied {
		h.lines.Log(deniedRate, h.cfg.Logger, slog.LevelInfo, "this process may not write heartbeats to Redis, so its rules version, clock and losses are unknown to others; docs/REDIS.md has the rights",
			"err", err)
	}
}

// send writes one heartbeat. It returns Redis's time and the members' versions of the rules.
func (h *Heartbeat) send(ctx context.Context, m *published.Member) (clock time.Time, versions []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	answer, err := heartbeatScript.Run(ctx, h.client, []string{h.layout.Members, h.layout.MembersInfo, h.layout.MembersVersions},
		h.field(m.Name), published.EncodeMember(m), memberLife.Milliseconds(), published.MaxMembers, published.CutVersion(m.RulesVersion), versionLife.Milliseconds(), h.former).StringSlice()
	if err != nil {
		return time.Time{}, nil, err
	}
	h.former = published.CutVersion(m.RulesVersion)
	if len(answer) >= 3 {
		seconds, errSeconds := strconv.ParseInt(answer[0], 10, 64)
		micros, errMicros := strconv.ParseInt(answer[1], 10, 64)
		if errSeconds == nil && errMicros == nil {
			versions = answer[2:]
			slices.Sort(versions)
			return time.Unix(seconds, micros*int64(time.Microsecond)), versions, nil
		}
	}
	return time.Time{}, nil, fmt.Errorf("unexpected answer %q", answer)
}

var deniedRate = loglimit.LineRate{Burst: 1, Every: time.Hour}

// field returns the member's field, with its name cut to the maximum length.
func (h *Heartbeat) field(name string) string {
	return published.MemberField(name[:min(len(name), published.MaxMemberName)], h.id)
}

// leave removes this process from the members, so that it is not listed for the rest of memberLife.
// If it has counted outcomes, its last heartbeat stays for that time instead, so that none are
// missing from the sums.
func (h *Heartbeat) leave(ctx context.Context) {
	if h.Stats().Sent == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.cfg.Timeout)
	defer cancel()
	m := h.cfg.Member()
	if len(m.Admitted) > 0 {
		m.Left, m.Dropped, m.Displaced, m.Lost, m.Arrived = true, 0, 0, 0, 0
		if _, _, err := h.send(ctx, &m); err == nil {
			return
		}
	}
	field := h.field(m.Name)
	_, _ = h.client.Pipelined(ctx, func(p redis.Pipeliner) error { // otherwise its heartbeat expires
		p.ZRem(ctx, h.layout.Members, field)
		p.HDel(ctx, h.layout.MembersInfo, field)
		return nil
	})
}

// Stats returns the state and the counters. It may be called at any time.
func (h *Heartbeat) Stats() HeartbeatStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

// IsDenied reports whether err means that the Redis user lacks a right. Within a script Redis 7
// reports that in other words.
func IsDenied(err error) bool {
	if err == nil {
		return false
	}
	for _, words := range []string{"NOPERM", "ACL failure in script", "can't run this command", "can't access at least one of the keys"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// differing logs when members of a fleet have had different rules for a while, and when they
// agree again. It is not safe for concurrent use.
type differing struct {
	since  time.Time // start of the difference; zero if there is none
	logged bool
}

// differingPatience is how long versions may differ before that is logged: they do while a file
// is rolled out.
const differingPatience = 5 * time.Second

// compare records the versions of the rules that members have now.
func (d *differing) compare(log *slog.Logger, ownVersion string, versions []string, now time.Time) {
	if len(versions) < 2 {
		if d.logged {
			log.Info("instances and aggregators have the same rules again", "version", ownVersion)
		}
		*d = differing{}
		return
	}
	if d.since.IsZero() {
		d.since = now
	}
	if !d.logged && now.Sub(d.since) >= differingPatience {
		d.logged = true
		log.Warn("instances and aggregators have different rules: give all the same file; hotparam list --instances shows them",
			"own", ownVersion, "versions", versions[:min(len(versions), 10)])
	}
}
