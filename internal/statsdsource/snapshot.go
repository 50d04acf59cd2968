package statsdsource

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/snapshot"
)

// Snapshots stores the newest snapshot of a source's state for the next process that publishes.
type Snapshots interface {
	// Publishes reports whether this process publishes. Only then are snapshots saved.
	Publishes() bool
	// Save stores data for the time keep, replacing the data of the last Save.
	Save(ctx context.Context, data []byte, keep time.Duration) error
	// Load returns the data of the last Save, or nil if there is none.
	Load(ctx context.Context) ([]byte, error)
}

const (
	// snapshotEvery is the interval at which a snapshot is saved. Packets sent after the
	// snapshot count as lost, and are made up for like lost packets.
	snapshotEvery = time.Second
	// snapshotTimeout bounds each call to [Snapshots]. It is shorter than snapshotEvery, so a
	// slow store skips seconds and delays nothing else.
	snapshotTimeout = 500 * time.Millisecond
	// snapshotKeys bounds the keys of a snapshot, over all shards.
	snapshotKeys = 8192
)

// SnapshotCounters are the counters of snapshots. N is int64 in [SnapshotStats], and
// [atomic.Int64] while they are updated.
type SnapshotCounters[N any] struct {
	// Saved and Failed count the snapshots that were and were not saved. Size is the size in
	// bytes of the newest.
	Saved, Failed, Size N
	// Dropped counts keys near a threshold for which snapshots had no room.
	Dropped N
	// Resumed counts the snapshots that this process continued from when it began to publish,
	// and Refused those that it could not use.
	Resumed, Refused N
}

// SnapshotStats are the counters of snapshots since the source was created.
type SnapshotStats = SnapshotCounters[int64]

type snapshotStats = SnapshotCounters[atomic.Int64]

// saveSnapshots saves a snapshot each second until ctx ends, which is after the readers have
// ended, and then a last one.
func (s *Source) saveSnapshots(ctx context.Context) {
	for range base.Ticks(ctx, snapshotEvery) {
		s.saveSnapshot(ctx)
	}
	s.saveSnapshot(context.WithoutCancel(ctx))
}

func (s *Source) saveSnapshot(ctx context.Context) {
	s.reloading.Lock()
	if !s.snapshots.Publishes() {
		s.resumed = false // another process publishes: continue from its snapshot later
		s.reloading.Unlock()
		return
	}
	s.resume()      // otherwise the snapshot of the previous process would be lost
	if !s.resumed { // the store does not answer
		s.reloading.Unlock()
		s.snapshotStats.Failed.Add(1)
		return
	}
	cut, wait := s.cut(time.Now())
	keep := decode.Lookback(s.rules.InOrder()) + time.Minute
	s.reloading.Unlock()
	dropped := wait(cut)
	data, more := cut.Append(nil)
	s.snapshotStats.Dropped.Add(int64(dropped + more))
	s.snapshotStats.Size.Store(int64(len(data)))
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	if err := s.snapshots.Save(ctx, data, keep); err != nil {
		s.snapshotStats.Failed.Add(1)
		return
	}
	s.snapshotStats.Saved.Add(1)
}

// cut records which packets are counted, at a time at which no reader decodes. wait returns once
// the shards have counted exactly these packets, and adds the windows of the keys.
func (s *Source) cut(now time.Time) (saved *snapshot.Snapshot, wait func(to *snapshot.Snapshot) (dropped int)) {
	s.listener.decoding.Lock()
	defer s.listener.decoding.Unlock()
	saved = &snapshot.Snapshot{Cut: now}
	s.decoders[0].Save(saved)
	return saved, s.shards.Save(snapshotKeys, saved.Carried)
}

// resume continues from the snapshot of the previous publishing process, unless that has been
// tried since this process began to publish. The caller holds s.reloading.
func (s *Source) resume() {
	if s.snapshots == nil || s.resumed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	data, err := s.snapshots.Load(ctx)
	if err != nil {
		return // tried again before a snapshot is saved
	}
	if s.resumed = true; data == nil {
		return
	}
	age, err := s.resumeFrom(data)
	if errors.Is(err, errHeardAll) || errors.Is(err, decode.ErrOverlap) { // this process has counted at the same time as the other
		return
	}
	if err != nil {
		s.snapshotStats.Refused.Add(1)
		if s.log != nil {
			s.log.Warn("the snapshot of the aggregator before is not used: hot keys stay hot until a whole window was heard", "err", err)
		}
		return
	}
	s.snapshotStats.Resumed.Add(1)
	if s.log != nil {
		s.log.Info("continues from the snapshot of the aggregator before", "age", age.Round(time.Millisecond))
	}
}

// Reasons why a snapshot is refused.
var (
	errTooOld    = errors.New("it is older than the longest window")
	errFuture    = errors.New("it is from the future: is the clock of one of the machines off?")
	errHeardAll  = errors.New("this process has heard the longest window itself")
	errOtherKeys = errors.New("it has no rule that counts as one of the present rules does")
)

// resumeFrom continues from a snapshot. If it returns an error, nothing has changed.
func (s *Source) resumeFrom(data []byte) (age time.Duration, err error) {
	saved, err := snapshot.Parse(data)
	if err != nil {
		return 0, err
	}
	s.listener.decoding.Lock()
	defer s.listener.decoding.Unlock()
	now := time.Now()
	age = now.Sub(saved.Cut)
	longest := decode.Lookback(s.rules.InOrder())
	switch {
	case age < -decode.DefaultLag:
		return age, errFuture
	case age >= longest:
		return age, fmt.Errorf("%w: %v", errTooOld, age.Round(time.Second))
	case now.Sub(s.started) >= longest:
		return age, errHeardAll
	case !saved.Renumber(s.rules.CountsOf()):
		return age, errOtherKeys
	}
	resume, err := s.decoders[0].Resume(saved, s.started, now)
	if err == nil {
		s.shards.Resume(saved, resume)
	}
	return age, err
}
