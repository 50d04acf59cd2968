package hotkeys

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
)

// hints is the state that decides how pushes are treated. Any client that may publish on the
// channel can send anything, so Redis has the last word. The next poll compares each pushed
// change that was applied with the stream. A push of any other version causes a poll, as far as
// hintRate permits. hints is used by the polling goroutine only.
type hints struct {
	seed      maphash.Seed
	confirmed uint64    // last change of this run that was read from Redis
	applied   []pushed  // pushed changes applied since then, in order
	distrust  time.Time // end of the time in which no push is applied
	lines     loglimit.Limit
}

// pushed is a pushed change that was applied.
type pushed struct {
	n            uint64 // number of its version
	sum          uint64 // hash of its bytes
	subscription uint64 // number of the subscription that received it
}

const (
	// maxApplied is the most pushed changes that are applied between two polls.
	maxApplied = 256
	// distrustTime is how long pushes only cause polls, and are not applied, after a push of a
	// change that Redis does not have.
	distrustTime = 30 * time.Second
)

// hintRate limits the polls that pushes cause.
var hintRate = loglimit.LineRate{Burst: 4, Every: time.Second / 4}

// absorb applies a pushed change if it is the next one. It reports whether a poll must read the
// change that the push announces.
func (w *Watcher) absorb(payload string) (look bool) {
	arrival := time.Now()
	change, err := published.ParsePush([]byte(payload))
	if err != nil {
		w.stats.Change(func(s *WatcherStats) { s.Malformed++ }) // if the change was made, the next poll finds it
		return false
	}
	trusted := !arrival.Before(w.hints.distrust)
	w.mu.Lock()
	defer w.mu.Unlock()
	if change.Fleet != nil && trusted {
		w.state.fleet.applyChange(change.Fleet)
		w.show()
	}
	ours := w.state.version
	switch {
	case change.Version.Run != ours.Run:
		return true
	case change.Version.N <= ours.N:
		return false
	case change.Version.N > ours.N+1 || change.VersionAlone() || !trusted || len(w.hints.applied) == maxApplied:
		return true
	}
	w.hints.applied = append(w.hints.applied, pushed{change.Version.N, w.hints.sum(payload), w.poller.subscription.heard.Load().subscriptions})
	w.state.applyChange(&change, arrival)
	w.show()
	return false
}

func (h *hints) sum(payload string) uint64 { return maphash.String(h.seed, payload) }

// confirm records that the state is v, as read from Redis.
func (h *hints) confirm(v published.Version) { h.confirmed, h.applied = v.N, h.applied[:0] }

// pushCheck is the result of the comparison of pushed changes with Redis.
type pushCheck int

const (
	asPushed pushCheck = iota
	notKnown           // the stream no longer has all of them
	notSo              // Redis has another change instead of one of them, or none
	lostSo             // like notSo, but after a new subscription: Redis may have failed over
)

// judge compares each pushed change that was applied since the last poll with the change
// in Redis, whose version is theirs.
func (w *Watcher) judge(ctx context.Context, theirs published.Version) (pushCheck, error) {
	h := &w.hints
	last := h.applied[len(h.applied)-1]
	denied := notSo
	if now := w.poller.subscription.heard.Load(); !now.subscribed || now.subscriptions != last.subscription {
		denied = lostSo
	}
	if theirs.N < last.n {
		return denied, nil
	}
	messages, err := w.changes(ctx, theirs.N-h.applied[0].n+1)
	if err != nil {
		return notKnown, err
	}
	inRedis := make(map[string]string, len(messages))
	for _, m := range messages {
		version, _ := m.Values["version"].(string)
		inRedis[version], _ = m.Values["change"].(string)
	}
	for _, p := range h.applied {
		change, ok := inRedis[published.Version{Run: theirs.Run, N: p.n}.String()]
		switch {
		case !ok:
			return notKnown, nil
		case h.sum(change) != p.sum:
			return denied, nil
		}
	}
	return asPushed, nil
}

// reportBogus records that a pushed change was applied that Redis does not have: another client
// publishes on the channel, or Redis has lost the change. No push is applied for distrustTime.
func (w *Watcher) reportBogus() {
	w.stats.Change(func(s *WatcherStats) { s.Bogus++ })
	w.hints.distrust = time.Now().Add(distrustTime)
	w.hints.lines.Warn(lineRate, w.cfg.Logger, "a change was pushed that Redis does not have: Redis has lost it, or another client publishes on the channel; pushes are not applied for a while",
		"channel", w.layout.Changed, "for", distrustTime)
}

// changes returns the last n changes of the stream and a few more, the newest first. It
// returns none if the stream cannot be read.
func (w *Watcher) changes(ctx context.Context, n uint64) ([]redis.XMessage, error) {
	call, cancel := w.poller.callContext(ctx)
	defer cancel()
	// The client has separate connections for pipelines and for single commands. With
	// pipelines only, a dead link costs a poll one timeout and not two.
	var messages *redis.XMessageSliceCmd
	_, err := w.client.Pipelined(call, func(p redis.Pipeliner) error {
		messages = p.XRevRangeN(call, w.layout.Events, "+", "-", int64(min(n, maxCatchUp)+catchUpSlack))
		return nil
	})
	if aboutCommand(err) {
		w.reportForeign(err)
		return nil, nil
	}
	return messages.Val(), err
}
