package cost

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
)

// holdInterval is how often the published set is read.
const holdInterval = 20 * time.Millisecond

// Held is the time in which a key was held, since the beginning of the run.
type Held struct {
	From, To time.Duration
	Changes  []Change
}

// Change is a change of a hold. A key that is no longer held has no stage.
type Change struct {
	At      time.Duration
	Stage   published.HoldStage
	Permits int64
}

// record adds what was read at a time.
func (h *Held) record(at time.Duration, hold *published.Hold) {
	c := Change{At: at}
	if hold != nil {
		h.To, c.Stage, c.Permits = at, hold.Stage, hold.Permits
	}
	if n := len(h.Changes); n == 0 || h.Changes[n-1].Stage != c.Stage || h.Changes[n-1].Permits != c.Permits {
		h.Changes = append(h.Changes, c)
	}
}

// wasKept reports whether a trial has shown that the key is a cause.
func (h *Held) wasKept() bool {
	return slices.ContainsFunc(h.Changes, func(c Change) bool { return c.Stage == published.HoldKept })
}

// gaps returns how often the key was released and held again.
func (h *Held) gaps() (n int) {
	for _, c := range h.Changes[1:max(1, len(h.Changes)-1)] {
		if c.Stage == "" {
			n++
		}
	}
	return n
}

// watchHolds follows the held keys that are published, until ctx ends.
func watchHolds(ctx context.Context, client redis.UniversalClient, begin time.Time) map[string]*Held {
	holds := make(map[string]*Held)
	ticker := time.NewTicker(holdInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return holds
		case <-ticker.C:
		}
		hot, err := hotkeys.List(ctx, client, namespace)
		if err != nil {
			continue // Redis answers late on a busy machine; the next reading is soon
		}
		now := time.Since(begin)
		read := make(map[string]*published.Hold)
		for _, h := range hot {
			if h.Hold != nil {
				read[h.Text] = h.Hold
				if holds[h.Text] == nil {
					holds[h.Text] = &Held{From: now}
				}
			}
		}
		for key, h := range holds {
			h.record(now, read[key])
		}
	}
}
