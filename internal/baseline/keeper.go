package baseline

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// keepEvery is the interval in which a keeper checks for hours to read or write.
	keepEvery = 10 * time.Second
	// readAtOnce is the number of hours that one call reads.
	readAtOnce = 24
	// callTimeout bounds each call to the store.
	callTimeout = 5 * time.Second
	// maxParts bounds the parts that are read of an hour.
	maxParts = 1024
)

// KeeperConfig configures a [Keeper]. Days, Store and InOffice are required.
type KeeperConfig struct {
	Days  *Days
	Store Store
	// InOffice reports whether this process publishes its share of the keys. A standby counts
	// the same keys, and does not write.
	InOffice func() bool
	// Log receives a line when the store fails, and one when it works again. A nil Log
	// disables it.
	Log *slog.Logger
}

// Keeper writes the counts of this process to a store, and reads those of all processes. It
// reads everything at the start and on taking office, and at each full hour the hours of the
// next comparison. While the store fails, detectors continue with the known counts, and the
// keeper retries.
type Keeper struct {
	cfg      KeeperConfig
	toRead   []int64
	hour     int64
	inOffice bool
	loaded   bool
	failing  atomic.Bool

	reads, writes, failures, unreadable atomic.Int64
}

// NewKeeper returns a keeper, which does nothing until [Keeper.Run].
func NewKeeper(c KeeperConfig) *Keeper {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{cfg: c}
}

// Run reads and writes until ctx ends, and then writes the remaining hours.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	for {
		k.syncStore(ctx)
		select {
		case <-ctx.Done():
			if k.cfg.Days.Wanted() && k.cfg.InOffice() {
				k.report(k.write(context.WithoutCancel(ctx)))
			}
			return
		case <-ticker.C:
		}
	}
}

// syncStore does the reads and writes that are due.
func (k *Keeper) syncStore(ctx context.Context) {
	if !k.cfg.Days.Wanted() {
		return
	}
	hour, took := HourOf(time.Now()), k.cfg.InOffice()
	if !k.loaded || took && !k.inOffice {
		k.toRead = all(hour)
		k.loaded = true
	} else if hour != k.hour {
		k.toRead = append(k.toRead, compared(hour)...)
	}
	k.hour, k.inOffice = hour, took
	err := k.read(ctx)
	if err == nil && took {
		err = k.write(ctx)
	}
	if ctx.Err() == nil {
		k.report(err)
	}
}

// all returns the hours to keep, in the order in which they are needed: first the hours that
// hour is compared with.
func all(hour int64) []int64 {
	hours := compared(hour)
	for back := range int64(Kept) {
		hours = append(hours, hour-back)
	}
	return hours
}

// compared returns the hours that an hour is compared with.
func compared(hour int64) (hours []int64) {
	for day := int64(1); day <= History; day++ {
		same := hour - day*dayHours
		hours = append(hours, same, same-1, same+1)
	}
	return hours
}

// read reads the hours that are due.
func (k *Keeper) read(ctx context.Context) error {
	for len(k.toRead) > 0 {
		n := min(readAtOnce, len(k.toRead))
		if err := k.readHours(ctx, k.toRead[:n]); err != nil {
			k.toRead = k.toRead[max(0, len(k.toRead)-2*Kept):] // a bound, however long the store fails
			return err
		}
		k.toRead = k.toRead[n:]
	}
	return nil
}

func (k *Keeper) readHours(ctx context.Context, hours []int64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	values, err := k.cfg.Store.Read(ctx, hours)
	if err != nil {
		return err
	}
	k.reads.Add(int64(len(hours)))
	for number, parts := range values {
		n := 0
		for part, value := range parts {
			h, err := Parse(value)
			if n++; err != nil || h.Number != number || n > maxParts {
				k.unreadable.Add(1)
				continue
			}
			k.cfg.Days.Merge(part, h)
		}
	}
	return nil
}

// write writes the hours that have to be saved. It reads each first, since the process that
// held this share before may have counted more of it.
func (k *Keeper) write(ctx context.Context) error {
	days := k.cfg.Days
	read := int64(-1 << 62)
	for _, h := range days.unsavedHours() {
		if h.hour != read {
			if err := k.readHours(ctx, []int64{h.hour}); err != nil {
				return err
			}
			read = h.hour
		}
		if err := k.save(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) save(ctx context.Context, where partHour) error {
	days := k.cfg.Days
	h := days.hourAt(where)
	if h == nil || !days.isUnsaved(where) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := k.cfg.Store.Write(ctx, where.hour, where.part, h.Append(nil)); err != nil {
		return err
	}
	k.writes.Add(1)
	days.markSaved(where, h)
	return nil
}

// report logs when the store begins to fail and when it works again.
func (k *Keeper) report(err error) {
	switch {
	case err == nil && k.failing.Swap(false):
		k.cfg.Log.Info("baselines are read and written again")
	case err == nil:
	default:
		k.failures.Add(1)
		if !k.failing.Swap(true) && !errors.Is(err, context.Canceled) {
			k.cfg.Log.Error("baselines of earlier days cannot be read or written: keys are compared with those read before", "err", err)
		}
	}
}

// Stats are the counters and state of a keeper.
type Stats struct {
	Size
	Failing                             bool
	Reads, Writes, Failures, Unreadable int64
}

// Stats returns the counters and state. It is safe for concurrent use.
func (k *Keeper) Stats() Stats {
	return Stats{
		Size: k.cfg.Days.Size(), Failing: k.failing.Load(),
		Reads: k.reads.Load(), Writes: k.writes.Load(), Failures: k.failures.Load(), Unreadable: k.unreadable.Load(),
	}
}

// Store keeps hours for later processes. Its values are encoded by [Hour.Append]. They expire
// some time after [Kept] hours.
type Store interface {
	// Read returns the values of some hours: by number of the hour, the value of each part.
	Read(ctx context.Context, hours []int64) (map[int64]map[string][]byte, error)
	// Write stores the value of a part in an hour, and replaces the one before.
	Write(ctx context.Context, hour int64, part string, value []byte) error
}
