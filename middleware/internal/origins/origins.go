// Package origins samples where the requests of a hot key come from.
package origins

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam/internal/wire"
)

// Sample samples the routes and the callers of one hot key's requests. Each is a
// Space-Saving summary (Metwally, Agrawal, El Abbadi 2005) of a few names, which is drained
// about once a second. It costs some nanoseconds for a request of a hot key, and nothing for
// others.
type Sample struct {
	samples atomic.Int32 // samples since the last drain
	mu      sync.Mutex
	routes  nameCounts
	callers nameCounts
}

const (
	// The first sampleAll requests after a drain are all counted. Then one in sampleOne is
	// counted, with a weight of sampleOne.
	sampleAll = 64
	sampleOne = 16
	// tallied is the number of names that are counted at a time; maxName bytes of each are kept.
	tallied = 8
	maxName = 64
)

// nameCounts counts a few names.
type nameCounts struct {
	used   int
	counts [tallied]int64
	sizes  [tallied]uint8
	names  [tallied][maxName]byte // stored here, so that a new name does not allocate
}

// Weight returns the number of requests that the present one represents, or 0 if it is not
// counted. Most requests of a busy key are not counted, and write no memory that processors
// share. dice is random.
func (o *Sample) Weight(dice uint64) int64 {
	switch {
	case o.samples.Load() < sampleAll:
		return 1
	case dice%sampleOne == 0:
		return sampleOne
	}
	return 0
}

// Add counts one request, unless another one is being counted: no request waits for
// statistics.
func (o *Sample) Add(route, caller string, weight int64) {
	if !o.mu.TryLock() {
		return
	}
	defer o.mu.Unlock()
	o.samples.Add(1)
	o.routes.add(route, weight)
	o.callers.add(caller, weight)
}

// Drain empties the sample. It calls yield for each name until yield returns false, and reports
// whether yield asked for more.
func (o *Sample) Drain(yield func(kind wire.OriginKind, name []byte, n int64) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.samples.Store(0)
	return o.routes.drain(wire.Route, yield) && o.callers.drain(wire.Caller, yield)
}

func (t *nameCounts) add(name string, n int64) {
	if name == "" {
		return
	}
	name = strings.ToValidUTF8(name[:min(len(name), maxName)], "")
	least := 0
	for i := range t.used {
		if string(t.names[i][:t.sizes[i]]) == name {
			t.counts[i] += n
			return
		}
		if t.counts[i] < t.counts[least] {
			least = i
		}
	}
	if t.used < tallied {
		least = t.used
		t.used++
	}
	t.counts[least] += n // the replaced name's count becomes the error
	t.sizes[least] = uint8(copy(t.names[least][:], name))
}

func (t *nameCounts) drain(kind wire.OriginKind, yield func(kind wire.OriginKind, name []byte, n int64) bool) bool {
	more := true
	for i := 0; i < t.used && more; i++ {
		more = yield(kind, t.names[i][:t.sizes[i]], t.counts[i])
	}
	t.used = 0
	clear(t.counts[:])
	return more
}
