package statsdsource

import "sync/atomic"

// ListenerStats count connections and packets before their lines are decoded.
type ListenerStats struct {
	// Connections are open now, and Accepted have ever been. Refused were closed as
	// [MaxConnections] were open, and all of them sending. Unused and Silent made room for
	// others: the former had sent nothing yet, the latter nothing for a while. AcceptFailed
	// could not be accepted, for example for want of file descriptors.
	Connections, Accepted, Refused, Unused, Silent, AcceptFailed int64
	// TooLong are lines, frames and packets over 64 KiB: lines and frames are
	// passed over, of packets the whole lines of the first 64 KiB are read.
	TooLong int64
	// Truncated are lines and frames that the end of their connection cut off.
	Truncated int64
	// Dropped are packets that the system dropped, since the socket's buffer was
	// full or they were damaged. (Linux, UDP.)
	Dropped int64
}

// listenerStats are the counters of all readers of a listener.
type listenerStats struct {
	connections, accepted, refused, unused, silent, acceptFailed atomic.Int64
	tooLong, truncated, dropped                                  atomic.Int64
}

func (s *listenerStats) load() ListenerStats {
	return ListenerStats{
		Connections: s.connections.Load(), Accepted: s.accepted.Load(), Refused: s.refused.Load(),
		Unused: s.unused.Load(), Silent: s.silent.Load(), AcceptFailed: s.acceptFailed.Load(),
		TooLong: s.tooLong.Load(), Truncated: s.truncated.Load(), Dropped: s.dropped.Load(),
	}
}
