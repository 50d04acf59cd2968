package statsdsource

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxNap is the longest nap, and so the longest delay of a packet by a nap.
	maxNap = time.Millisecond
	// napFor is the number of packets that a nap is meant to gather. A socket's buffer of the
	// usual default size holds four times as many large ones.
	napFor = 48
)

// nap sleeps for the time returned by napAfter. The runtime's own sleep is at least a
// millisecond while nothing else runs.
func nap(n int, full bool, took, spent time.Duration) {
	if d := napAfter(n, full, took, spent); d > 0 {
		t := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&t, nil) // a signal may end it early
	}
}

// napAfter returns how long to sleep before the next read. The last read returned n packets and
// was full or not, it came took after the read before it, and spent has passed since. It left
// the socket empty, so the next read would wait for a packet, and waking up for each packet
// costs several times what its lines do. A nap lasts until a batch of packets has probably
// arrived. There is no nap unless packets arrive at least each millisecond, and none after a
// full read, which may have left packets in the socket.
func napAfter(n int, full bool, took, spent time.Duration) time.Duration {
	if n == 0 || full || took <= 0 || took > time.Duration(n)*maxNap {
		return 0
	}
	return max(0, min(maxNap, took*napFor/time.Duration(n))-spent)
}
