//go:build !linux

package statsdsource

import (
	"errors"
	"net"
	"time"
)

// packetSocket is a packet socket.
type packetSocket struct {
	addr net.Addr
	file unixSocket // removed with the socket
	conn packetConn
}

// newPacketSocket returns a socket that owns conn.
func newPacketSocket(conn packetConn, file unixSocket) (*packetSocket, error) {
	return &packetSocket{conn.LocalAddr(), file, conn}, nil
}

func (s *packetSocket) isUDP() bool {
	_, ok := s.addr.(*net.UDPAddr)
	return ok
}

// setReadBuffer requests a buffer of this many bytes.
func (s *packetSocket) setReadBuffer(bytes int) error { return s.conn.SetReadBuffer(bytes) }

// interrupt ends a read that waits.
func (s *packetSocket) interrupt() { _ = s.conn.SetReadDeadline(time.Now()) }

// waitUntil sets the deadline of reads.
func (s *packetSocket) waitUntil(end time.Time) { _ = s.conn.SetReadDeadline(end) }

func (s *packetSocket) close() error { return errors.Join(s.file.remove(), s.conn.Close()) }
