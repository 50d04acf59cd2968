package hotkeys

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/wire"
)

// hints are the pushes as far as they are believed. Whoever has the right to publish
// on the channel can say anything, so a push is held to what Redis says: what it
// changed is compared with the stream by the next poll, and what does not follow what
// is held makes the watcher look, and not more often than hintRate. Of the polling
// goroutine alone.
type hints struct {
	seed      maphash.Seed
	confirmed uint64   // of the run that is followed: the last change that Redis told of itself
	applied   []pushed // those since, one after the other
	distrust  time.Time
	polls     hintBucket
	lines     loglimit.Limit
}

// pushed is a change that was applied as it was pushed.
type pushed struct {
	n            uint64
	sum          uint64 // of its bytes
	subscription uint64 // that it came over
}

const (
	// maxApplied is how many pushed changes are applied between two polls: more wait.
	maxApplied = 256
	// distrustTime is for how long pushes are not applied after one that Redis does
	// not have: they only make the watcher look.
	distrustTime = 30 * time.Second
	// hintBurst and hintRate bound the polls that pushes cause.
	hintBurst = 4
	hintRate  = time.Second / 4
)

// hintBucket is a bucket of hintBurst tokens, of which one comes each hintRate.
type hintBucket struct{ full time.Time }

func (b *hintBucket) take(now time.Time) bool {
	if b.full.Before(now) {
		b.full = now
	}
	if b.full.Sub(now) > (hintBurst-1)*hintRate {
		return false
	}
	b.full = b.full.Add(hintRate)
	return true
}

// push applies a change that was pushed, if it is the one that follows, or looks.
func (w *Watcher) push(ctx context.Context, payload string) error {
	if !w.absorb(payload) {
		return nil
	}
	now := time.Now()
	if !w.hints.polls.take(now) {
		w.stats.unread.Add(1)
		return nil
	}
	w.hearing.hinted = true
	defer func() { w.hearing.hinted = false }()
	return w.poll(ctx)
}

// absorb applies a change that was pushed, if it is the one that follows. It reports
// whether the push tells of something that has to be read.
func (w *Watcher) absorb(payload string) (look bool) {
	arrival := time.Now()
	change, err := wire.ParseHotChange([]byte(payload))
	if err != nil {
		w.stats.malformed.Add(1) // if it was one of ours, the version tells
		return false
	}
	trusted := !arrival.Before(w.hints.distrust)
	w.mu.Lock()
	defer w.mu.Unlock()
	if change.Fleet != nil && trusted {
		w.state.fleet.apply(change.Fleet)
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
	w.hints.applied = append(w.hints.applied, pushed{change.Version.N, w.hints.sum(payload), w.stats.subscriptions.Load()})
	w.state.apply(&change, arrival)
	w.show()
	return false
}

func (h *hints) sum(payload string) uint64 { return maphash.String(h.seed, payload) }

// confirm records that what is held is what Redis told.
func (h *hints) confirm(v wire.HotVersion) { h.confirmed, h.applied = v.N, h.applied[:0] }

// verdict is what Redis says of what was pushed.
type verdict int

const (
	asPushed verdict = iota
	notKnown         // the stream does not have it any more
	notSo            // Redis has another change in its place, or none
	lostSo           // likewise, and the subscription is not that of then: Redis may have failed over
)

// judge compares each change that was pushed and applied since the last poll with
// what Redis has, now that it is at the version theirs.
func (w *Watcher) judge(ctx context.Context, theirs wire.HotVersion) (verdict, error) {
	h := &w.hints
	last := h.applied[len(h.applied)-1]
	denied := notSo
	if !w.stats.subscribed.Load() || w.stats.subscriptions.Load() != last.subscription {
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
		change, ok := inRedis[wire.HotVersion{Run: theirs.Run, N: p.n}.String()]
		switch {
		case !ok:
			return notKnown, nil
		case h.sum(change) != p.sum:
			return denied, nil
		}
	}
	return asPushed, nil
}

// reportBogus records a push of a change that Redis does not have: somebody else
// publishes on the channel, or Redis has lost the change. Nothing that is pushed is
// applied for a while.
func (w *Watcher) reportBogus() {
	w.stats.bogus.Add(1)
	now := time.Now()
	w.hints.distrust = now.Add(distrustTime)
	if unlogged, ok := w.hints.lines.Allow(lineRate, now); ok {
		w.cfg.Logger.Warn("a change was pushed that Redis does not have: lost by Redis, or somebody else publishes on the channel; pushes are not applied for a while",
			"channel", w.layout.Changed, "for", distrustTime, "unlogged", unlogged)
	}
}

// changes reads the last n changes from the stream, and some more, the newest first;
// none where the stream cannot be read.
func (w *Watcher) changes(ctx context.Context, n uint64) ([]redis.XMessage, error) {
	call, cancel := w.call(ctx)
	defer cancel()
	// The client keeps connections for pipelines apart from those for single commands. All
	// that polls ask goes by one: a link that went silent costs one time-out, not two.
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
