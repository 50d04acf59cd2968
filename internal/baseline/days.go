package baseline

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// History is how many days before the present one a baseline is made of.
	History  = 7
	dayHours = 24
	// Kept is how many hours are kept, the present one included.
	Kept = (History+1)*dayHours + 1
	// maxHourKeys bounds the keys of all parts in an hour. Parts that come when there are as
	// many are not kept.
	maxHourKeys = 8 * MaxKeys
)

// Days holds the hours of the last days, of all parts. All methods can be called from
// several goroutines, and none waits for anything but memory.
type Days struct {
	owner string

	// hours is replaced, never changed.
	hours   atomic.Pointer[hourTable]
	wanted  atomic.Bool
	refused atomic.Int64

	mu      sync.Mutex
	newest  int64
	unsaved map[place]struct{}
}

// hourTable has, by number, what each part counted in an hour.
type hourTable map[int64]map[string]*Hour

// place is where an hour of a part is kept.
type place struct {
	hour int64
	part string
}

// NewDays returns days without an hour. Owner names this process's share of the keys, as in
// [hotkeys.PublisherConfig]: the process that takes over the share has the same.
func NewDays(owner string) *Days {
	d := &Days{owner: owner, newest: -1 << 62, unsaved: make(map[place]struct{})}
	d.hours.Store(&hourTable{})
	return d
}

// Want records that a rule compares keys with days before, so that they are worth reading.
func (d *Days) Want() { d.wanted.Store(true) }

// Wanted reports whether a rule compares keys with days before.
func (d *Days) Wanted() bool { return d.wanted.Load() }

// Put records what a part of this process, one of so many, has counted in an hour so far. It
// is to be saved.
func (d *Days) Put(part, parts int, h *Hour) {
	at := place{h.Number, fmt.Sprintf("%s/%d-%d", d.owner, part, parts)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keep(at, h) {
		d.unsaved[at] = struct{}{}
	}
}

// Merge records what a part of some process counted in an hour.
func (d *Days) Merge(part string, h *Hour) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := place{h.Number, part}
	if d.keep(at, h) {
		delete(d.unsaved, at) // what this process has of it is shorter
	}
}

// keep records an hour of a part, unless one of which as much or more was counted is there:
// after a restart that is what the process before has counted. It reports whether it did. An
// hour grows, so one of this process takes the place of itself.
func (d *Days) keep(at place, h *Hour) bool {
	if at.hour <= d.newest-Kept {
		return false
	}
	before := *d.hours.Load()
	if old := before[at.hour][at.part]; old != nil && old.seconds() >= h.seconds() {
		return false
	}
	n := h.Keys()
	for part, other := range before[at.hour] {
		if part != at.part {
			n += other.Keys()
		}
	}
	if n > maxHourKeys {
		d.refused.Add(1)
		return false
	}
	after := maps.Clone(before)
	parts := maps.Clone(after[at.hour])
	if parts == nil {
		parts = make(map[string]*Hour)
	}
	parts[at.part] = h
	after[at.hour] = parts
	d.expire(after, at.hour)
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
	maps.DeleteFunc(d.unsaved, func(at place, _ struct{}) bool { return at.hour <= hour-Kept })
}

// unsavedHours returns the hours of this process that are to be saved, the oldest first.
func (d *Days) unsavedHours() []place {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Keys(d.unsaved), func(a, b place) int { return int(a.hour - b.hour) })
}

func (d *Days) isUnsaved(at place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.unsaved[at]
	return ok
}

// saved records that h has been saved, unless it has grown meanwhile.
func (d *Days) saved(at place, h *Hour) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at(at) == h {
		delete(d.unsaved, at)
	}
}

// at returns an hour of a part, or nil.
func (d *Days) at(at place) *Hour { return (*d.hours.Load())[at.hour][at.part] }

// Size is how much [Days] holds.
type Size struct{ Hours, Keys, Bytes, Unsaved, Refused int64 }

// Size returns how much is held.
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
