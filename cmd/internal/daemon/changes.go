package daemon

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// changeLines limits the lines about keys that become hot, and separately those about keys that
// cool. A person can read that many in an incident; more would be a flood.
var changeLines = loglimit.LineRate{Burst: 20, Every: time.Second}

// changeLog logs each key that becomes hot or cools, at a bounded rate. A nil log disables it. It
// is safe for concurrent use.
type changeLog struct {
	log       *slog.Logger
	outcomes  hotkeys.Outcomes // nil if they are not known
	hot, cool loglimit.Limit

	mu sync.Mutex
	// since holds the time at which each reported hot key became hot. It identifies changes of
	// the limit of a key that is hot already, which are not logged.
	since map[rules.Key]time.Time
}

// maxLogged bounds the number of hot keys in changeLog.since. Beyond it, a change of a key's
// limit is logged as if the key had become hot.
const maxLogged = 10_000

// becameHot records a hot key and reports whether it was not hot before.
func (c *changeLog) becameHot(h *published.Hot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, known := c.since[h.Key]
	if known && since.Equal(h.Since) {
		return false
	}
	if c.since == nil {
		c.since = make(map[rules.Key]time.Time)
	}
	if known || len(c.since) < maxLogged {
		c.since[h.Key] = h.Since
	}
	return true
}

// cooled removes a key from the reported ones.
func (c *changeLog) cooled(key rules.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, key)
}

// write logs a change, except on a standby: the publishing aggregator logs the same change.
func (c *changeLog) write(change *published.Change, publisher *hotkeys.Publisher) {
	if c.log == nil {
		return
	}
	asked, standby := false, false
	silent := func() bool {
		if !asked {
			asked, standby = true, publisher.Standby()
		}
		return standby
	}
	for i := range change.Hot {
		if !c.becameHot(&change.Hot[i]) {
			continue
		}
		if unlogged, ok := c.hot.Allow(changeLines, time.Now()); ok && !silent() {
			c.logChange("hot", &change.Hot[i], unlogged)
		}
	}
	for i := range change.Cool {
		c.cooled(change.Cool[i].Key)
		if unlogged, ok := c.cool.Allow(changeLines, time.Now()); ok && !silent() {
			h := change.Cool[i]
			if c.outcomes != nil {
				h.Outcomes = c.outcomes.Of(h.Key, h.Since)
			}
			c.logChange("cool", &h, unlogged)
		}
	}
}

func (c *changeLog) logChange(what string, h *published.Hot, unlogged int) {
	args := []any{"rule", h.Rule, "key", h.Text, "rate", hotwords.Speed(h.Rate, h.Cause.Unit), "count", hotwords.Bounds(h), "threshold", hotwords.Cause(h.Cause)}
	if !h.Limit.IsZero() {
		args = append(args, "limit", hotwords.Rate(h.Limit, h.Cause.Unit), "mode", string(h.Mode))
	}
	if h.Hold != nil {
		args = append(args, "hold", hotwords.Hold(h.Hold))
	}
	if words := hotwords.Outcomes(h); words != "" {
		args = append(args, "requests", words)
	}
	if h.Released != "" {
		args = append(args, "why", h.Released)
	}
	if unlogged > 0 {
		args = append(args, "unlogged", unlogged)
	}
	c.log.Info(what, args...)
}

// loggedPublisher is a publisher that logs its changes.
type loggedPublisher struct {
	*hotkeys.Publisher
	changes *changeLog
}

// Publish implements aggregator.Publisher.
func (p loggedPublisher) Publish(change published.Change) {
	p.changes.write(&change, p.Publisher)
	p.Publisher.Publish(change)
}
