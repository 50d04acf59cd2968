package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
)

// poll compares the version in Redis with the watcher's and reads the changes between them. Polls and
// pushes are handled one at a time, so the answer to a call is never compared with a change that
// arrived during the call.
func (w *Watcher) poll(ctx context.Context) error {
	err := w.compare(ctx)
	w.poller.record(ctx, err)
	if err == nil {
		w.stats.Change(func(s *WatcherStats) { s.Answered = time.Now() })
	}
	return err
}

// reportForeign records that one of our keys in Redis holds a foreign value. The publisher
// repairs it within a second. Until then the watcher's entries stay in force.
func (w *Watcher) reportForeign(err error) {
	w.stats.Change(func(s *WatcherStats) { s.Foreign++ })
	w.foreigners.Warn(lineRate, w.cfg.Logger, "a key of the hot set in Redis cannot be read; hot keys stay hot until their entries expire, or until the publisher has repaired the key", "err", err)
}

// pollCommands are the commands of a poll.
type pollCommands struct {
	version *redis.StringCmd
	beat    *redis.DurationCmd
	fleet   *redis.StringCmd
	size    *redis.IntCmd
	clock   *redis.TimeCmd
}

func (w *Watcher) readPoll(ctx context.Context) (read pollCommands, err error) {
	call, cancel := w.poller.callContext(ctx)
	defer cancel()
	err = Transact(call, w.client, func(tx redis.Pipeliner) {
		read.version = tx.Get(call, w.layout.Version)
		read.beat = tx.PTTL(call, w.layout.Beat)
		read.fleet = tx.Get(call, w.layout.Beat)
		read.size = tx.ZCard(call, w.layout.Hot)
		read.clock = tx.Time(call)
	})
	return read, err
}

// compare is poll without the record of its result.
func (w *Watcher) compare(ctx context.Context) error {
	issued := time.Now()
	read, err := w.readPoll(ctx)
	if err != nil && !errors.Is(err, ErrForeign) {
		return fmt.Errorf("poll the version: %w", err)
	}
	w.stats.Change(func(s *WatcherStats) { s.Polls++ })
	if w.poller.subscription.check() {
		w.poller.lines.Log(lineRate, w.cfg.Logger, slog.LevelInfo, "changes are not pushed: subscribing again")
	}
	w.mu.Lock()
	w.state.clock = redisClock{local: issued, redis: read.clock.Val()}
	if read.beat.Val() > 0 {
		w.state.beat = issued.Add(read.beat.Val())
	}
	ours := w.state.version
	held := len(w.state.entries) - w.state.missed
	w.show() // the heartbeat may have returned, or may expire earlier
	holds := w.state.held > 0 && !w.state.alive
	w.mu.Unlock()
	if holds {
		return w.pollReleases(ctx) // without a publisher nothing else in Redis can change
	}
	if err != nil {
		w.reportForeign(err)
		return nil
	}
	version := read.version.Val()
	if version == "" {
		// Nothing is published yet, or Redis has lost its state and the
		// publisher has not noticed. Our entries stay in force until their
		// end, so that a restart of Redis lifts no limit.
		w.stats.Change(func(s *WatcherStats) { s.Lost++ })
		return nil
	}
	theirs, err := published.ParseVersion(version)
	if err != nil {
		w.reportForeign(fmt.Errorf("%w, got %.80q", err, version))
		return nil
	}
	verdict, err := w.judgePushed(ctx, ours, theirs)
	switch {
	case err != nil:
		return fmt.Errorf("compare the pushed changes: %w", err)
	case verdict == notSo || verdict == notKnown:
		return errors.Join(w.load(ctx), w.pollFleet(ctx, read.fleet.Val()))
	}
	lost := verdict == lostSo || theirs.Run == ours.Run && (theirs.N < ours.N || theirs.N == ours.N && int(read.size.Val()) != held)
	err = w.catchUpWith(ctx, theirs, lost, issued)
	if err != nil && !aboutCommand(err) {
		return err
	}
	// If Redis refuses one of the commands, the others may still succeed.
	return errors.Join(err, w.renew(ctx), w.pollFleet(ctx, read.fleet.Val()))
}

// judgePushed judges the pushed changes that were applied, if there are any that Redis can have.
func (w *Watcher) judgePushed(ctx context.Context, ours, theirs published.Version) (pushCheck, error) {
	if len(w.hints.applied) == 0 || theirs.Run != ours.Run || theirs.N < w.hints.confirmed {
		return asPushed, nil
	}
	verdict, err := w.judge(ctx, theirs)
	switch {
	case err != nil:
	case verdict == asPushed:
		w.hints.confirm(ours)
	case verdict == notSo:
		w.reportBogus()
	}
	return verdict, err
}

// catchUpWith makes the state follow the version in Redis. lost reports whether a poll, which was
// issued at this time, found that Redis has lost changes.
func (w *Watcher) catchUpWith(ctx context.Context, theirs published.Version, lost bool, issued time.Time) (err error) {
	w.mu.Lock()
	ours, missed := w.state.version, w.state.missed
	w.mu.Unlock()
	if !lost {
		w.lostSince = time.Time{}
	} else if w.lostSince.IsZero() {
		w.lostSince = issued
	}
	switch {
	case lost && issued.Sub(w.lostSince) < rewriteTime:
		// Redis has lost changes, for example by a failover to a replica that lagged behind.
		// Their publishers write them again, under a new run id. Until then our entries stay in
		// force until their end, so nothing cools.
	case lost:
		if err = w.load(ctx); err == nil {
			w.lostSince = time.Time{}
		}
	case theirs.Run != ours.Run:
		w.foundByPoll()
		err = w.load(ctx)
	case missed > 0: // their owner may have nothing to write
		err = w.load(ctx)
	case theirs.N > ours.N:
		err = w.advance(ctx, theirs)
	}
	return err
}

// advance applies the pushes that wait, and then reads the changes that are still missing.
func (w *Watcher) advance(ctx context.Context, to published.Version) error {
	for range maxPushes {
		select {
		case payload := <-w.poller.pushes:
			w.absorb(payload)
			continue
		default:
		}
		break
	}
	if ours := w.version(); ours.Run != to.Run || ours.N >= to.N {
		return nil
	}
	w.foundByPoll()
	return w.catchUp(ctx, to)
}

// foundByPoll records that the present poll found a change that should have been pushed.
func (w *Watcher) foundByPoll() {
	if !w.hinted {
		w.poller.subscription.foundByPoll()
	}
}

func (w *Watcher) version() published.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.version
}

// catchUpSlack is the number of changes that are read in addition to the missed ones, since more
// may be made before the read.
const catchUpSlack = 8

// catchUp reads the changes up to a version from the stream, or the whole set if the
// stream does not have all of them.
func (w *Watcher) catchUp(ctx context.Context, to published.Version) error {
	w.stats.Change(func(s *WatcherStats) { s.Gaps++ })
	from := w.version()
	messages, err := w.changes(ctx, to.N-from.N)
	if err != nil {
		return fmt.Errorf("read missed changes: %w", err)
	}
	arrival := time.Now()
	changes := w.changesAfter(messages, from)
	if n := uint64(len(changes)); n < to.N-from.N {
		if err := w.waitJitter(ctx); err != nil {
			return err
		}
		return w.load(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range changes {
		w.state.applyChange(&changes[i], arrival)
	}
	if len(w.hints.applied) == 0 { // otherwise the next poll confirms them
		w.hints.confirm(w.state.version)
	}
	w.show()
	return nil
}

// maxCatchUp bounds the number of changes that are read. Beyond that the whole set is smaller.
const maxCatchUp = 1000

// changesAfter returns the changes that follow the version from without a gap. messages are
// sorted, the newest first.
func (w *Watcher) changesAfter(messages []redis.XMessage, from published.Version) []published.Push {
	var changes []published.Push
	want := from.N + 1
	for i := len(messages) - 1; i >= 0; i-- {
		payload, _ := messages[i].Values["change"].(string)
		change, err := published.ParsePush([]byte(payload))
		switch {
		case err != nil:
			w.stats.Change(func(s *WatcherStats) { s.Malformed++ })
		case change.Version.Run == from.Run && change.Version.N == want:
			changes = append(changes, change)
			want++
		}
	}
	return changes
}

// jitter is the longest random delay before a read of the whole set, if the stream no longer has
// the missed changes. It spreads the load, since a whole fleet misses them at the same time.
const jitter = 200 * time.Millisecond

// waitJitter waits for a random part of the jitter.
func (w *Watcher) waitJitter(ctx context.Context) error {
	return base.Sleep(ctx, rand.N(w.jitter))
}
