package kafkasource

import (
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
)

// Counters are the counts since the source was created. N is int64 in [Stats], and
// [atomic.Int64] while they are updated.
type Counters[N any] struct {
	Records    N // all records read
	NoHeaders  N // records of programs that send only lines
	BadHeaders N // records with unreadable headers, not counted
	Foreign    N // records of another namespace, not counted
	Mismatched N // records of senders that know another number of partitions

	Rebalances    N // assignments by the group, including unchanged ones
	Assigned      N // partitions that were assigned
	Revoked       N // partitions that were handed over to another member
	Lost          N // partitions that were lost with the membership
	Resizes       N // changes of the topic's number of partitions
	Truncated     N // losses of records that brokers had accepted
	Pauses        N // pauses in fetching a partition whose worker was behind
	FetchErrors   N
	CommitErrors  N // failed commits of positions
	AdoptFailures N // failed take-overs of a partition's hot keys
	Replaced      Replaced[N]
	Abandoned     N // clients in Replaced that did not end in time
}

// Replaced counts the stuck clients that were replaced, by reason.
type Replaced[N any] struct {
	Throttled N // a broker asked for a pause longer than the session
	Fetch     N // a partition was not read, though it held more records
	Ends      N // a leader did not report the ends of its partitions
	Group     N // the group's coordinator did not answer this client
}

// Stats are the counters of a source and the state of its partitions, which is at most a second
// old.
type Stats struct {
	Counters[int64]

	// Decoder and Detector are the sums over the partitions. Their counters include
	// partitions that the source no longer has.
	Decoder  decode.Stats
	Detector aggregator.DetectorStats

	Partitions []PartitionStats // partitions that the source has, by number
}

// PartitionStats is the state of one partition.
type PartitionStats struct {
	Partition int32
	// Position is the offset to be read next. End is the offset after the last record, or -1 if
	// unknown. Records is the number of records between them, or -1 if unknown.
	Position, End, Records int64
	// Delay is the age of the newest counts that have been read. Behind is the age of the newest
	// time whose counts are complete.
	Delay, Behind time.Duration
	// Covered reports whether all records that were in the partition when it was assigned
	// have been read.
	Covered bool
	// Adopted reports whether the hot keys have been taken over from Redis. A partition that is
	// not adopted or not covered publishes nothing: its keys stay as they were.
	Adopted bool
	// Frozen reports whether the partition's time has stood still for a while, so that no key
	// cools. Either the partition is not read, or an instance is slow, cannot write to it, or
	// has just died.
	Frozen bool
	// Unread reports whether for a while the leader has not answered, or records have not
	// arrived.
	Unread bool
}

// frozenAfter is how long a partition's time may stand still, or the partition go unread, before
// Stats reports it. The time advances with each heartbeat of the slowest instance.
const frozenAfter = 3 * time.Second

// report is the state of a worker, for Stats.
type report struct {
	position         int64
	oldest, end      int64
	newest           time.Time // time of the newest counts
	complete         time.Time // time up to which the counts are complete
	completeMoved    time.Time // time at which complete last advanced
	sure             time.Time // all that was in the partition then has been read
	covered, adopted bool
	decoder          decode.Stats
	detector         aggregator.DetectorStats
}

// pastStats are the counters of partitions that we no longer have.
type pastStats struct {
	decoder  decode.Stats
	detector aggregator.DetectorStats
}
