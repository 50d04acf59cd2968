package baseline

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// History is the number of days before the current one that a baseline covers.
	History  = 7
	dayHours = 24
	// Kept is the number of hours that are kept, the current one included.
	Kept = (History+1)*dayHours + 1
	// maxHourKeys bounds the keys of all parts in an hour. Parts that exceed it are not kept.
	maxHourKeys = 8 * MaxKeys
)

// Days holds the hours of the last days, of all parts. All methods can be called from several
// goroutines, and none waits for anything but memory.
type Days struct {
	owner string

	// hours is replaced, never changed.
	hours   atomic.Pointer[hourTable]
	wanted  atomic.Bool
	refused atomic.Int64

	mu      sync.Mutex
	newest  int64
	unsaved map[partHour]struct{}
}

// hourTable holds the count of each part in an hour, by the number of the hour.
type hourTable map[int64]map[string]*Hour

// partHour identifies an hour of a part.
type partHour struct {
	hour int64
	part string
}

// NewDays returns days without an hour. Owner names this process's share of the keys, as in
// [hotkeys.PublisherConfig]: the process that takes over the share has the same.
func NewDays(owner string) *Days {
	d := &Days{owner: owner, newest: -1 << 62, unsaved: make(map[partHour]struct{})}
	d.hours.Store(&hourTable{})
	return d
}

// Want records that a rule compares keys with earlier days, so that these are worth reading.
func (d *Days) Want() { d.wanted.Store(true) }

// Wanted reports whether a rule compares keys with earlier days.
func (d *Days) Wanted() bool { return d.wanted.Load() }

// Put records the counts so far of an hour, in part number part of this process's parts. They
// have to be saved.
func (d *Days) Put(part, parts int, h *Hour) {
	hour := partHour{h.Number, fmt.Sprintf("%s/%d-%d", d.owner, part, parts)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keepHour(hour, h) {
		d.unsaved[hour] = struct{}{}
	}
}

// Merge records the counts of a part of some process in an hour.
func (d *Days) Merge(part string, h *Hour) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hour := partHour{h.Number, part}
	if d.keepHour(hour, h) {
		delete(d.unsaved, hour) // this process has counted less of it
	}
}

// keepHour records an hour of a part, and reports whether it did. It keeps a recorded hour that
// covers as much time or more, which after a restart is the count of the previous process. An
// hour grows, so an hour of this process replaces its own earlier state.
func (d *Days) keepHour(where partHour, h *Hour) bool {
	if where.hour <= d.newest-Kept {
		return false
	}
	before := *d.hours.Load()
	if old := before[where.hour][where.part]; old != nil && old.seconds() >= h.seconds() {
		return false
	}
	n := h.Keys()
	for part, other := range before[where.hour] {
		if part != where.part {
			n += other.Keys()
		}
	}
	if n > maxHourKeys {
		d.refused.Add(1)
		return false
	}
	after := maps.Clone(before)
	parts := maps.Clone(after[where.hour])
	if parts == nil {
		parts = make(map[string]*Hour)
	}
	parts[where.part] = h
	after[where.hour] = parts
	d.expire(after, where.hour)
	d.hours.Store(&after)
	return true
}

// expire removes the hours that are no longer needed if hour is the newest.
func (d *Days) expire(t hourTable, hour int64) {
	if hour <= d.newest {
		return
	}
	d.newest = hour
	maps.DeleteFunc(t, func(number int64, _ map[string]*Hour) bool { return number <= hour-Kept })
	maps.DeleteFunc(d.unsaved, func(where partHour, _ struct{}) bool { return where.hour <= hour-Kept })
}

// unsavedHours returns the hours of this process that have to be saved, the oldest first.
func (d *Days) unsavedHours() []partHour {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Keys(d.unsaved), func(a, b partHour) int { return int(a.hour - b.hour) })
}

func (d *Days) isUnsaved(where partHour) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.unsaved[where]
	return ok
}

// markSaved records that h has been saved, unless it has grown since.
func (d *Days) markSaved(where partHour, h *Hour) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hourAt(where) == h {
		delete(d.unsaved, where)
	}
}

// hourAt returns an hour of a part, or nil.
func (d *Days) hourAt(where partHour) *Hour { return (*d.hours.Load())[where.hour][where.part] }

// Size is the amount of data in [Days].
type Size struct{ Hours, Keys, Bytes, Unsaved, Refused int64 }

// Size returns the amount of data held.
func (d *Days) Size() (s Size) {
	for _, parts := range *d.hours.Load() {
		s.Hours++
		for _, h := range parts {
			s.Keys += int64(h.Keys())
			s.Bytes += headSize + int64(len(h.Rules)*ruleSize+h.Keys()*keySize)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Unsaved, s.Refused = int64(len(d.unsaved)), d.refused.Load()
	return s
}
