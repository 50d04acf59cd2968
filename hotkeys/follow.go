package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/wire"
)

// follow brings the state up to date, one step after the other: so what a call
// answers is never compared with what came in meanwhile.
func (w *Watcher) follow(ctx context.Context) {
	ticker := time.NewTicker(w.cfg.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = w.poll(ctx) // it records what became of it
		case <-w.kick:
			_ = w.poll(ctx)
		case payload := <-w.pushes:
			_ = w.push(ctx, payload)
		}
	}
}

// poll compares the version with ours and makes up for what was missed. It counts a
// failure, and logs where an outage begins and ends: a push that costs no call says
// nothing of that.
func (w *Watcher) poll(ctx context.Context) error {
	err := w.compare(ctx)
	if ctx.Err() != nil {
		return err
	}
	w.stats.answered.Store(err == nil)
	o := &w.outage
	if err == nil {
		if o.succeeded() {
			w.cfg.Logger.Info("following the hot set again", "version", w.version())
		}
		return nil
	}
	w.stats.failures.Add(1)
	if _, begins := o.failed(err); begins {
		if unlogged, ok := w.lines.Allow(lineRate, time.Now()); ok {
			o.logged = true
			w.cfg.Logger.Warn("cannot follow the hot set; what is hot stays so until its end", "err", err, "unlogged", unlogged)
		}
	}
	return err
}

// reportForeign records that a key of ours in Redis holds what is not ours. The publisher
// puts it right, within a second: until then what is held stays in force.
func (w *Watcher) reportForeign(err error) {
	w.stats.foreign.Add(1)
	if unlogged, ok := w.foreigners.Allow(lineRate, time.Now()); ok {
		w.cfg.Logger.Warn("a key of the hot set in Redis cannot be read; what is hot stays so until its end, or until the publisher has put the key right", "err", err, "unlogged", unlogged)
	}
}

// compare is one poll.
func (w *Watcher) compare(ctx context.Context) error {
	call, cancel := w.call(ctx)
	defer cancel()
	var (
		version *redis.StringCmd
		beat    *redis.DurationCmd
		fleet   *redis.StringCmd
		size    *redis.IntCmd
		at      *redis.TimeCmd
	)
	issued := time.Now()
	err := transact(call, w.client, func(tx redis.Pipeliner) {
		version = tx.Get(call, w.layout.Version)
		beat = tx.PTTL(call, w.layout.Beat)
		fleet = tx.Get(call, w.layout.Beat)
		size = tx.ZCard(call, w.layout.Hot)
		at = tx.Time(call)
	})
	if err != nil && !errors.Is(err, errForeign) {
		return fmt.Errorf("poll the version: %w", err)
	}
	w.stats.polls.Add(1)
	w.check()
	w.mu.Lock()
	w.state.clock = redisClock{local: issued, redis: at.Val()}
	if beat.Val() > 0 {
		w.state.beat = issued.Add(beat.Val())
	}
	ours, missed := w.state.version, w.state.missed
	held := len(w.state.entries) - missed
	w.show() // the heartbeat may have come back, or have less left
	w.mu.Unlock()
	if err != nil {
		w.reportForeign(err)
		return nil
	}
	if version.Val() == "" {
		// Nothing was published yet, or Redis lost its state and the
		// publisher has not noticed yet: what we hold was promised until its
		// end, so a restart of Redis opens no hole.
		w.stats.lost.Add(1)
		return nil
	}
	theirs, err := wire.ParseHotVersion(version.Val())
	if err != nil {
		w.reportForeign(fmt.Errorf("%w, got %.80q", err, version.Val()))
		return nil
	}
	verdict := asPushed
	if len(w.hints.applied) > 0 && theirs.Run == ours.Run && theirs.N >= w.hints.confirmed {
		if verdict, err = w.judge(ctx, theirs); err != nil {
			return fmt.Errorf("compare what was pushed: %w", err)
		}
		switch verdict {
		case asPushed:
			w.hints.confirm(ours)
		case notSo:
			w.reportBogus()
			return errors.Join(w.load(ctx), w.pollFleet(ctx, fleet.Val()))
		case notKnown:
			return errors.Join(w.load(ctx), w.pollFleet(ctx, fleet.Val()))
		case lostSo: // see below
		}
	}
	lost := verdict == lostSo || theirs.Run == ours.Run && (theirs.N < ours.N || theirs.N == ours.N && int(size.Val()) != held)
	if !lost {
		w.lostSince = time.Time{}
	} else if w.lostSince.IsZero() {
		w.lostSince = issued
	}
	switch {
	case lost && issued.Sub(w.lostSince) < rewriteTime:
		// Redis lost changes, as by a failover to a replica that lagged behind.
		// Who made them writes them again, under a new run id: what we hold was
		// promised until its end, so nothing cools meanwhile.
	case lost:
		if err = w.load(ctx); err == nil {
			w.lostSince = time.Time{}
		}
	case theirs.Run != ours.Run:
		w.foundByPoll()
		err = w.load(ctx)
	case missed > 0: // whose owner may have nothing left to write
		err = w.load(ctx)
	case theirs.N > ours.N:
		err = w.advance(ctx, theirs)
	}
	if err != nil && !aboutCommand(err) {
		return err
	}
	// What Redis refuses of one of them is no reason not to do the others.
	return errors.Join(err, w.renew(ctx), w.pollFleet(ctx, fleet.Val()))
}

// advance works off the pushes that wait, and reads what is missing then.
func (w *Watcher) advance(ctx context.Context, to wire.HotVersion) error {
	for range maxPushes {
		select {
		case payload := <-w.pushes:
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

func (w *Watcher) version() wire.HotVersion {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.version
}

// catchUpSlack is how many changes more than were missed are read, as more may
// be made meanwhile.
const catchUpSlack = 8

// catchUp reads the changes up to version to from the stream; where it does not
// have them all, the whole set.
func (w *Watcher) catchUp(ctx context.Context, to wire.HotVersion) error {
	w.stats.gaps.Add(1)
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
		w.state.apply(&changes[i], arrival)
	}
	if len(w.hints.applied) == 0 { // else the next poll confirms them
		w.hints.confirm(w.state.version)
	}
	w.show()
	return nil
}

// maxCatchUp bounds how many changes are read; with more, the whole set is less.
const maxCatchUp = 1000

// changesAfter picks from messages, the newest first, the changes that follow the
// version from without a gap.
func (w *Watcher) changesAfter(messages []redis.XMessage, from wire.HotVersion) []wire.HotChange {
	var changes []wire.HotChange
	want := from.N + 1
	for i := len(messages) - 1; i >= 0; i-- {
		payload, _ := messages[i].Values["change"].(string)
		change, err := wire.ParseHotChange([]byte(payload))
		switch {
		case err != nil:
			w.stats.malformed.Add(1)
		case change.Version.Run == from.Run && change.Version.N == want:
			changes = append(changes, change)
			want++
		}
	}
	return changes
}

// waitJitter waits a random part of the jitter.
func (w *Watcher) waitJitter(ctx context.Context) error {
	timer := time.NewTimer(rand.N(w.cfg.Jitter))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// load reads the whole set.
func (w *Watcher) load(ctx context.Context) error {
	w.stats.resyncs.Add(1)
	call, cancel := w.call(ctx)
	defer cancel()
	issued := time.Now()
	set, err := readWholeSet(call, w.client, w.layout)
	switch {
	case errors.Is(err, errForeign):
		w.reportForeign(err)
		return nil
	case err != nil:
		return fmt.Errorf("read the whole set: %w", err)
	}
	if set.version == "" {
		w.stats.lost.Add(1) // between two calls: see poll
		return nil
	}
	version, err := wire.ParseHotVersion(set.version)
	if err != nil {
		w.reportForeign(fmt.Errorf("%w, got %.80q", err, set.version))
		return nil
	}
	if n := len(set.unreadable); n > 0 {
		w.reportForeign(fmt.Errorf("%d entries cannot be read", n))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.replace(version, set, issued)
	w.hints.confirm(version)
	w.state.clock = redisClock{local: issued, redis: set.at}
	if set.beat > 0 {
		w.state.beat = issued.Add(set.beat)
	}
	w.show()
	return nil
}

// renew reads the new ends of the entries that have less than half of their time
// left, and those again that could not be read.
func (w *Watcher) renew(ctx context.Context) error {
	w.mu.Lock()
	members := w.state.dueForRenewal(time.Now())
	w.mu.Unlock()
	if len(members) == 0 {
		return nil
	}
	call, cancel := w.call(ctx)
	defer cancel()
	var (
		infos  *redis.SliceCmd
		at     *redis.TimeCmd
		scores = make([]*redis.FloatCmd, len(members))
	)
	issued := time.Now()
	err := transact(call, w.client, func(tx redis.Pipeliner) {
		infos = tx.HMGet(call, w.layout.Info, members...)
		at = tx.Time(call)
		for i, member := range members {
			scores[i] = tx.ZScore(call, w.layout.Hot, member)
		}
	})
	switch {
	case errors.Is(err, errForeign):
		w.reportForeign(err)
		return nil
	case err != nil:
		return fmt.Errorf("renew entries: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, member := range members {
		info, _ := infos.Val()[i].(string)
		if h, ok := readEntry(member, info, scores[i].Val()); ok {
			w.state.grant(h, h.Until.Sub(at.Val()), issued)
		} else if scores[i].Err() != nil {
			w.state.forget(member)
		} // else the next poll sees that it is gone, and till then its end stands
	}
	w.show()
	return nil
}
