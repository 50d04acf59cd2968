package kafkasource

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/internal/countset"
)

// Counters are what a source has counted since it was made. N is int64 in [Stats], and
// [atomic.Int64] while they count.
type Counters[N any] struct {
	Records    N // read, in all
	NoHeaders  N // of programs that send lines alone
	BadHeaders N // not counted: headers that cannot be read
	Foreign    N // not counted: of another namespace
	Mismatched N // of senders that know of another number of partitions

	Rebalances    N // assignments by the group, including unchanged ones
	Assigned      N // partitions that were assigned
	Revoked       N // partitions that were handed over to another member
	Lost          N // partitions that were lost with the membership
	Resizes       N // times that the topic had another number of partitions
	Truncated     N // times that brokers lost records which they had accepted
	Pauses        N // times that a partition was not fetched as its worker was behind
	FetchErrors   N
	CommitErrors  N // failed commits of positions
	AdoptFailures N // failed take-overs of a partition's hot keys
	Abandoned     N // of the clients in Replaced, those that did not end in time
}

// counters are the counters of a source.
type counters struct {
	Counters[atomic.Int64]
	replaced [stuckReasons]atomic.Int64
}

// Stats are a source's counters and the state of its partitions, which is at most a
// second old.
type Stats struct {
	Counters[int64]

	// Decoder and Detector are the sums over the partitions. Their counters include
	// partitions that the source no longer has.
	Decoder  decode.Stats
	Detector aggregator.DetectorStats

	// Replaced are the stuck clients that were replaced, by reason.
	Replaced Replaced

	Partitions []PartitionStats // those that it has, by number
}

// Replaced are clients that were replaced, by reason.
type Replaced struct {
	Throttled int64 // a broker asked for a pause that is longer than the session
	Fetch     int64 // a partition was not read, though there was more in it
	Ends      int64 // a leader did not tell this client how far its partitions go
	Group     int64 // the group's coordinator did not answer this client
}

// Sum is all of them.
func (r Replaced) Sum() int64 { return r.Throttled + r.Fetch + r.Ends + r.Group }

// PartitionStats is the state of one partition.
type PartitionStats struct {
	Partition int32
	// Position is the offset that is read next, End the one after the last; -1:
	// not known. Records is how many are between them.
	Position, End, Records int64
	// Delay is how old the newest counts are that were read, Behind how long ago
	// the time is up to which all counts have come.
	Delay, Behind time.Duration
	// Covered: all is read that was there when the partition came. Until then
	// nothing cools.
	Covered bool
	// Adopted: the hot keys have been taken over. Until then nothing is published.
	Adopted bool
	// Frozen: its time has stood still for a while. Nothing cools. Either it is not
	// read, or an instance is slow, cannot write it, or has died a moment ago.
	Frozen bool
	// Unread: for a while its leader has not answered, or what is in it has not come.
	Unread bool
}

// frozenAfter is how long a partition's time may stand still, or the partition go unread,
// before Stats reports it. The time advances with each heartbeat of the slowest instance.
const frozenAfter = 3 * time.Second

// report is what a worker shows of itself.
type report struct {
	position, end    int64
	newest           time.Time // of the counts
	complete         time.Time
	moved            time.Time // when that last went on
	read             time.Time // all that was in the partition then has come
	covered, adopted bool
	decoder          decode.Stats
	detector         aggregator.DetectorStats
}

// pastStats are those of partitions that we do not have any longer.
type pastStats struct {
	decoder  decode.Stats
	detector aggregator.DetectorStats
}

// show shows the worker's state to Stats.
func (w *worker) show() {
	r := w.report
	r.position, r.complete, r.read = w.position, w.mark.complete, w.mark.sure
	r.decoder, r.detector = w.decoder.Stats(), w.detector.Stats()
	w.shown.Store(&r)
}

// retire keeps the counters of a worker that has ended; what it had at the end is
// there no longer.
func (s *Source) retire(w *worker) {
	r := w.shown.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, w)
	r.decoder.Senders, r.decoder.Late, r.decoder.Off = 0, decode.LateSenders{}, decode.OffClocks{}
	s.past.decoder.Merge(&r.decoder)
	s.past.detector.Merge(&aggregator.DetectorStats{Evicted: r.detector.Evicted, Unnamed: r.detector.Unnamed, Late: r.detector.Late})
}

// Stats returns the counters and the state. It is safe for concurrent use.
func (s *Source) Stats() Stats {
	c := &s.stats
	all := Stats{Counters: countset.Load[Counters[int64]](&c.Counters), Replaced: Replaced{
		Throttled: c.replaced[stuckThrottled].Load(), Fetch: c.replaced[stuckFetch].Load(),
		Ends: c.replaced[stuckEnds].Load(), Group: c.replaced[stuckGroup].Load(),
	}}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	all.Decoder.Merge(&s.past.decoder)
	all.Detector.Merge(&s.past.detector)
	for w := range s.running {
		r := w.shown.Load()
		all.Decoder.Merge(&r.decoder)
		all.Detector.Merge(&r.detector)
		if s.workers[w.partition] == w {
			all.Partitions = append(all.Partitions, r.stats(w.partition, now))
		}
	}
	slices.SortFunc(all.Partitions, func(a, b PartitionStats) int { return cmp.Compare(a.Partition, b.Partition) })
	return all
}

func (r *report) stats(partition int32, now time.Time) PartitionStats {
	p := PartitionStats{
		Partition: partition, Position: r.position, End: r.end, Records: -1,
		Covered: r.covered, Adopted: r.adopted,
		Frozen: r.moved.IsZero() || now.Sub(r.moved) > frozenAfter,
		Unread: r.read.IsZero() || now.Sub(r.read) > frozenAfter,
	}
	if r.position >= 0 && r.end >= 0 {
		p.Records = max(0, r.end-r.position)
	}
	if !r.newest.IsZero() {
		p.Delay = max(0, now.Sub(r.newest))
	}
	if !r.complete.IsZero() {
		p.Behind = max(0, now.Sub(r.complete))
	}
	return p
}
