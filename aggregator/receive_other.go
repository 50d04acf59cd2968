//go:build !linux

package aggregator

import (
	"time"
)

// readBatch is how many packets are read at a time.
const readBatch = 1

// receiver reads packets.
type receiver struct {
	conn   packetConn
	buffer []byte
	n      int
}

func newReceiver(conn packetConn) (*receiver, error) {
	return &receiver{conn: conn, buffer: make([]byte, maxDatagram+1)}, nil
}

// read waits for packets and tells how many there are, until the next read.
func (r *receiver) read() (n int, err error) {
	if r.n, err = r.conn.Read(r.buffer); err != nil {
		return 0, err
	}
	return 1, nil
}

// packet is one of those that were read, and when it came.
func (r *receiver) packet(_ int, now, _ time.Time) ([]byte, time.Time) { return r.buffer[:r.n], now }
