package statsdsource

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/snapshot"
)

// Snapshots keeps the newest snapshot of what a source knows, for the process that publishes
// after this one.
type Snapshots interface {
	// Publishes reports whether this process publishes. Only then it saves.
	Publishes() bool
	// Save keeps data for so long, in place of what was saved before.
	Save(ctx context.Context, data []byte, keep time.Duration) error
	// Load returns what was saved last, or nil if nothing was.
	Load(ctx context.Context) ([]byte, error)
}

const (
	// snapshotEvery is how often a snapshot is saved: what is sent after it heals as packets
	// that are lost do.
	snapshotEvery = time.Second
	// snapshotTimeout bounds each call to [Snapshots]. It is shorter than snapshotEvery, so a
	// slow store misses seconds and delays nothing else.
	snapshotTimeout = 500 * time.Millisecond
	// snapshotKeys bounds the keys of a snapshot, of all shards.
	snapshotKeys = 8192
)

// SnapshotCounters count snapshots. N is int64 in [SnapshotStats], and [atomic.Int64] while
// they count.
type SnapshotCounters[N any] struct {
	// Saved were saved, and Failed were not. Size is the size in bytes of the newest.
	Saved, Failed, Size N
	// Dropped are keys near a threshold for which snapshots had no room.
	Dropped N
	// Resumed were continued from when this process began to publish, and Refused could not
	// be.
	Resumed, Refused N
}

// SnapshotStats are the counters of snapshots since a source was made.
type SnapshotStats = SnapshotCounters[int64]

type snapshotStats = SnapshotCounters[atomic.Int64]

// saveSnapshots saves a snapshot each second, and a last one when ctx ends and the readers have.
func (s *Source) saveSnapshots(ctx context.Context) {
	ticker := time.NewTicker(snapshotEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.saveSnapshot(context.WithoutCancel(ctx))
			return
		case <-ticker.C:
			s.saveSnapshot(ctx)
		}
	}
}

func (s *Source) saveSnapshot(ctx context.Context) {
	s.reloading.Lock()
	if !s.snapshots.Publishes() {
		s.resumed = false // another process publishes: this one will continue from its snapshot
		s.reloading.Unlock()
		return
	}
	s.resume()      // or the snapshot of the process before would be lost
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

// cut records how far packets are counted at an instant at which no reader decodes. wait
// adds the windows of the keys when the shards have counted all packets up to there, and
// none after.
func (s *Source) cut(now time.Time) (of *snapshot.Snapshot, wait func(to *snapshot.Snapshot) (dropped int)) {
	s.listener.decoding.Lock()
	defer s.listener.decoding.Unlock()
	of = &snapshot.Snapshot{Cut: now}
	s.decoders[0].Save(of)
	return of, s.shards.Save(snapshotKeys, of.Carried)
}

// resume continues from the snapshot of the process that published before, unless that was
// tried since this one has begun to publish. The caller has the lock of reloads.
func (s *Source) resume() {
	if s.snapshots == nil || s.resumed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	data, err := s.snapshots.Load(ctx)
	if err != nil {
		return // it is tried again before a snapshot is saved
	}
	if s.resumed = true; data == nil {
		return
	}
	age, err := s.resumeFrom(data)
	if errors.Is(err, errHeardAll) || errors.Is(err, decode.ErrOverlap) { // it has counted beside the other one
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

// Reasons for which a snapshot is refused.
var (
	errTooOld    = errors.New("it is older than the longest window")
	errFuture    = errors.New("it is from the future: is the clock of one of the machines off?")
	errHeardAll  = errors.New("this process has heard the longest window itself")
	errOtherKeys = errors.New("it has no rule that counts as one of the present rules does")
)

// resumeFrom continues from a snapshot. If it returns an error, nothing has changed.
func (s *Source) resumeFrom(data []byte) (age time.Duration, err error) {
	of, err := snapshot.Parse(data)
	if err != nil {
		return 0, err
	}
	s.listener.decoding.Lock()
	defer s.listener.decoding.Unlock()
	now := time.Now()
	age = now.Sub(of.Cut)
	longest := decode.Lookback(s.rules.InOrder())
	switch {
	case age < -decode.DefaultLag:
		return age, errFuture
	case age >= longest:
		return age, fmt.Errorf("%w: %v", errTooOld, age.Round(time.Second))
	case now.Sub(s.started) >= longest:
		return age, errHeardAll
	case !of.Number(s.rules.CountsOf()):
		return age, errOtherKeys
	}
	resume, err := s.decoders[0].Resume(of, s.started, now)
	if err == nil {
		s.shards.Resume(of, resume)
	}
	return age, err
}
