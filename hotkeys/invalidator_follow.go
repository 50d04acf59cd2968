package hotkeys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

// maxInvalidationRead is the most entries that one poll reads. An instance that has missed more
// empties its cache.
const maxInvalidationRead = 256

// streamMark records the end of the stream at the last read.
type streamMark struct {
	last          string // ID of the newest entry, or empty if there was none
	run           string // run id of the hot set, which another follows when Redis has lost its state
	subscriptions uint64 // number of subscriptions at the last read
	unsure        bool   // whether the last read failed, or there was none
}

// poll reads the new entries of the stream.
func (v *Invalidator) poll(ctx context.Context, hinted bool) {
	err := v.read(ctx, hinted)
	v.seen.unsure = err != nil
	v.poller.record(ctx, err)
}

// read applies the entries of the stream that are new. It reads the last known entry again: if
// that is still there, no entry after it has been lost.
func (v *Invalidator) read(ctx context.Context, hinted bool) error {
	call, cancel := v.poller.callContext(ctx)
	defer cancel()
	subscriptions := v.poller.subscription.heard.Load().subscriptions
	count := int64(1)
	if v.seen.last != "" {
		count = maxInvalidationRead + 1
	}
	var read *redis.XMessageSliceCmd
	var version *redis.StringCmd
	err := Transact(call, v.client, func(tx redis.Pipeliner) {
		read = tx.XRevRangeN(call, v.layout.Invalidation, "+", cmp.Or(v.seen.last, "-"), count)
		version = tx.Get(call, v.layout.Version)
	})
	switch {
	case isWrongType(read.Err()):
		v.reportForeign(ErrForeign)
		v.seen.last = ""
		v.flush()
		return nil
	case err != nil && !errors.Is(err, ErrForeign):
		return fmt.Errorf("read the invalidations: %w", err)
	}
	v.stats.Change(func(s *InvalidatorStats) { s.Polls++ })
	v.poller.subscription.check()
	entries, newest, oldest := read.Val(), "", ""
	run, _, _ := strings.Cut(version.Val(), ":")
	if n := len(entries); n > 0 {
		newest, oldest = entries[0].ID, entries[n-1].ID
	}
	if newest != v.seen.last && !hinted {
		v.poller.subscription.foundByPoll()
	}
	// The end of an empty stream is no sign: an entry may have come and been lost since.
	sure := !v.seen.unsure && oldest == v.seen.last && run == v.seen.run && subscriptions == v.seen.subscriptions
	v.seen = streamMark{last: newest, run: run, subscriptions: subscriptions}
	if !sure {
		v.flush()
		return nil
	}
	for _, entry := range slices.Backward(entries[:max(len(entries)-1, 0)]) {
		v.applyEntry(entry.Values)
	}
	return nil
}

// applyEntry acts on an entry of the stream. One that cannot be read may be of a later version, so it
// invalidates all.
func (v *Invalidator) applyEntry(fields map[string]any) {
	i, err := published.ParseInvalidation(fields)
	switch {
	case err != nil:
		v.reportForeign(err)
		v.flush()
		return
	case i.Sender == v.id: // it was applied before it was sent
		return
	case i.All:
		v.flush()
		return
	}
	for _, id := range i.Targets {
		v.cache.InvalidateTarget(id)
	}
	for _, id := range i.Tags {
		v.cache.InvalidateTag(id)
	}
	v.stats.Change(func(s *InvalidatorStats) { s.Received += uint64(len(i.Targets) + len(i.Tags)) })
}

func (v *Invalidator) flush() {
	v.cache.Flush()
	v.stats.Change(func(s *InvalidatorStats) { s.Flushes++ })
}

// reportForeign records that the key holds another type, or an entry that cannot be read.
func (v *Invalidator) reportForeign(err error) {
	v.stats.Change(func(s *InvalidatorStats) { s.Foreign++ })
	v.foreign.Warn(lineRate, v.cfg.Logger, "invalidations of cached answers in Redis cannot be read, so all answers are invalidated; the next invalidation repairs a key of another type",
		"key", v.layout.Invalidation, "err", err)
}
