package statsdsource

import "sync/atomic"

// ListenerCounters count connections and packets before their lines are decoded. N is
// int64 in [ListenerStats], and [atomic.Int64] while they count.
type ListenerCounters[N any] struct {
	// Connections are open now, and Accepted have ever been. Refused were closed as
	// [MaxConnections] were open, and all of them sending. Unused, Silent and Crowded made
	// room for others: Unused had sent no line yet, Silent none for a while, and Crowded were
	// of the peer that had most. AcceptFailed could not be accepted, for example for want of
	// file descriptors.
	Connections, Accepted, Refused, Unused, Silent, Crowded, AcceptFailed N
	// TooLong are lines, frames and packets over 64 KiB. Lines and frames are passed
	// over. Of packets the whole lines of the first 64 KiB are read.
	TooLong N
	// Truncated are lines and frames that the end of their connection cut off.
	Truncated N
	// Dropped are packets that the system dropped, since the socket's buffer was
	// full or they were damaged. (Linux, UDP.)
	Dropped N
}

// ListenerStats are the counters of a listener since it was made.
type ListenerStats = ListenerCounters[int64]

// listenerStats are the counters of all sources of a listener.
type listenerStats = ListenerCounters[atomic.Int64]
