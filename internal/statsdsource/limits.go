package statsdsource

import "time"

const (
	// maxDatagram is the longest packet, line or frame that is accepted, since senders may fill
	// jumbo frames and Unix sockets.
	maxDatagram = 65535
	// socketBuffer is the requested buffer size, so that bursts outlast a pause. The system may
	// grant less.
	socketBuffer = 8 << 20
)

const (
	// drainFor is how long the listener continues to read after ctx ends, to empty the sockets.
	drainFor = 50 * time.Millisecond
	// maxFailures is the number of reads in a row that may fail before the listener gives up. It
	// pauses for failurePause after each.
	maxFailures  = 50
	failurePause = 20 * time.Millisecond
	// behindBy is how long packets may wait in the socket before the reader leaves counting to
	// the shards, if processors are idle. If the system does not report their arrival, it never
	// does.
	behindBy = 5 * time.Millisecond
	// instancesEvery is the interval at which the instances are published.
	instancesEvery = time.Second
)

// MaxReaders is the number of sockets that can share a UDP address.
const MaxReaders = 64
