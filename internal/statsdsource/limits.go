package statsdsource

import "time"

const (
	// maxDatagram is the longest packet, line or frame that is accepted: other senders may
	// fill jumbo frames, and Unix sockets.
	maxDatagram = 65535
	// socketBuffer is asked for, so that bursts outlast a pause; the system may
	// grant less.
	socketBuffer = 8 << 20
)

const (
	// drainFor is how long the listener continues to read after ctx ends, to empty the
	// sockets.
	drainFor = 50 * time.Millisecond
	// maxFailures is how many reads in a row may fail before the listener gives up. There is
	// a pause after each.
	maxFailures  = 50
	failurePause = 20 * time.Millisecond
	// behindBy is how long packets may wait in the socket before the reader leaves counting
	// to the shards, if processors are idle. (Where the system does not report their arrival, it never does.)
	behindBy = 5 * time.Millisecond
	// instancesEvery is how often the instances are published.
	instancesEvery = time.Second
)

// MaxReaders is how many sockets can share a UDP address.
const MaxReaders = 64
