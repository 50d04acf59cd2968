package statsdsource

import "sync/atomic"

// ListenerCounters are the counters of connections, and of packets before their lines are
// decoded. N is int64 in [ListenerStats], and [atomic.Int64] while they are updated.
type ListenerCounters[N any] struct {
	// Connections is the number of open connections, and Accepted the number ever accepted.
	// Refused were closed because [MaxConnections] were open and all of these were sending.
	// Unused, Silent and Crowded were closed for new ones: Unused had sent no line yet, Silent
	// none for a while, and Crowded were of the peer that had most. AcceptFailed could not be
	// accepted, for example because there were no file descriptors left.
	Connections, Accepted, Refused, Unused, Silent, Crowded, AcceptFailed N
	// TooLong counts lines, frames and packets over 64 KiB. Such lines and frames are skipped.
	// The whole lines in the first 64 KiB of such packets are read.
	TooLong N
	// Truncated counts lines and frames that were cut off by the end of their connection.
	Truncated N
	// Dropped counts packets that the system dropped, because the socket's buffer was full or
	// they were damaged. (Linux, UDP.)
	Dropped N
}

// ListenerStats are the counters of a listener since it was created.
type ListenerStats = ListenerCounters[int64]

// listenerStats are the counters of all readers of a listener.
type listenerStats = ListenerCounters[atomic.Int64]
