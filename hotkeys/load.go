package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// wholeSet is the published set at one instant.
type wholeSet struct {
	version string        // empty if nothing was published, or Redis lost its state
	beat    time.Duration // time until the heartbeat expires; 0 if there is none
	readAt  time.Time     // time of the read, on Redis's clock
	hot     []published.Hot
	// unreadable holds the members whose info cannot be read.
	unreadable []string
	owners     map[string]string // the hash published.Layout.Owners
}

// wrote reports whether an owner has changed the set in this run.
func (s *wholeSet) wrote(owner, run string) bool {
	v, err := published.ParseVersion(s.owners[owner+":version"])
	return err == nil && v.Run == run
}

// readWholeSet reads the whole set in one transaction. Until is on Redis's clock.
func readWholeSet(ctx context.Context, client redis.UniversalClient, layout published.Layout) (wholeSet, error) {
	var (
		version *redis.StringCmd
		beat    *redis.DurationCmd
		clock   *redis.TimeCmd
		scores  *redis.ZSliceCmd
		infos   *redis.MapStringStringCmd
		owners  *redis.MapStringStringCmd
	)
	err := Transact(ctx, client, func(tx redis.Pipeliner) {
		version = tx.Get(ctx, layout.Version)
		beat = tx.PTTL(ctx, layout.Beat)
		clock = tx.Time(ctx)
		scores = tx.ZRangeWithScores(ctx, layout.Hot, 0, -1)
		infos = tx.HGetAll(ctx, layout.Info)
		owners = tx.HGetAll(ctx, layout.Owners)
	})
	if err != nil {
		return wholeSet{}, err
	}
	set := wholeSet{version: version.Val(), beat: max(0, beat.Val()), readAt: clock.Val(), owners: owners.Val()}
	for _, z := range scores.Val() {
		member, _ := z.Member.(string)
		if h, ok := readEntry(member, infos.Val()[member], z.Score); ok {
			set.hot = append(set.hot, h)
		} else {
			set.unreadable = append(set.unreadable, member)
		}
	}
	return set, nil
}

// readEntry returns the entry of a member, its info and its score. ok is false if it cannot
// be read.
func readEntry(member, info string, score float64) (_ published.Hot, ok bool) {
	key, ok := rules.ParseKey(member)
	if !ok {
		return published.Hot{}, false
	}
	h, err := published.ParseInfo([]byte(info))
	if err != nil {
		return published.Hot{}, false
	}
	if !(score >= 0) || math.IsInf(score, 0) {
		score = 0 // no publisher wrote this, but the key is still hot
	}
	h.Key, h.Rate = key, score
	return h, true
}

// load reads the whole set.
func (w *Watcher) load(ctx context.Context) error {
	w.stats.Change(func(s *WatcherStats) { s.Resyncs++ })
	call, cancel := w.poller.callContext(ctx)
	defer cancel()
	issued := time.Now()
	set, err := readWholeSet(call, w.client, w.layout)
	if err != nil {
		return unlessForeign(err, "read the whole set", w.reportForeign)
	}
	if set.version == "" {
		w.stats.Change(func(s *WatcherStats) { s.Lost++ }) // it was lost between two calls; see compare
		return nil
	}
	version, err := published.ParseVersion(set.version)
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
	w.state.clock = redisClock{local: issued, redis: set.readAt}
	if set.beat > 0 {
		w.state.beat = issued.Add(set.beat)
	}
	w.show()
	return nil
}

// renew reads the new ends of entries that have less than half of their time left. It also reads
// entries again that could not be read.
func (w *Watcher) renew(ctx context.Context) error {
	w.mu.Lock()
	members := w.state.dueForRenewal(time.Now())
	w.mu.Unlock()
	if len(members) == 0 {
		return nil
	}
	call, cancel := w.poller.callContext(ctx)
	defer cancel()
	var (
		infos  *redis.SliceCmd
		clock  *redis.TimeCmd
		scores = make([]*redis.FloatCmd, len(members))
	)
	issued := time.Now()
	err := Transact(call, w.client, func(tx redis.Pipeliner) {
		infos = tx.HMGet(call, w.layout.Info, members...)
		clock = tx.Time(call)
		for i, member := range members {
			scores[i] = tx.ZScore(call, w.layout.Hot, member)
		}
	})
	if err != nil {
		return unlessForeign(err, "renew entries", w.reportForeign)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, member := range members {
		info, _ := infos.Val()[i].(string)
		if h, ok := readEntry(member, info, scores[i].Val()); ok {
			w.state.grant(h, h.Until.Sub(clock.Val()), issued)
		} else if scores[i].Err() != nil {
			w.state.forget(member)
		} else {
			// A known key that left the set: the next poll removes it. An unreadable one stays
			// until its end.
		}
	}
	w.show()
	return nil
}

// ErrForeign means that one of our keys holds a value of another type.
var ErrForeign = errors.New("a key holds a value of a foreign type")

// Transact runs the commands that queue queues as one transaction. A missing value is no error.
// If Redis refuses a command, the error is that command's, not the EXECABORT that follows from
// it. If the error is ErrForeign, all other commands have succeeded.
func Transact(ctx context.Context, client redis.UniversalClient, queue func(redis.Pipeliner)) error {
	commands, err := client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		queue(tx)
		return nil
	})
	if errors.Is(err, redis.Nil) || isWrongType(err) {
		return firstCause(commands)
	}
	if redis.IsExecAbortError(err) {
		for _, c := range commands {
			if cause := c.Err(); cause != nil && !redis.IsExecAbortError(cause) {
				return cause
			}
		}
	}
	return err
}

// unlessForeign returns the error of an action, wrapped. It reports ErrForeign instead and returns
// nil, since the publisher repairs the key.
func unlessForeign(err error, action string, report func(error)) error {
	if errors.Is(err, ErrForeign) {
		report(err)
		return nil
	}
	return fmt.Errorf("%s: %w", action, err)
}

// firstCause returns the first error of commands that have all run. It ignores missing
// values, and returns ErrForeign only if there is no other error.
func firstCause(commands []redis.Cmder) error {
	var foreign error
	for _, c := range commands {
		switch err := c.Err(); {
		case err == nil || errors.Is(err, redis.Nil):
		case isWrongType(err):
			foreign = ErrForeign
		default:
			return err
		}
	}
	return foreign
}
