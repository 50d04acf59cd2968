//go:build !linux

package statsdsource

import (
	"errors"
	"net"
	"time"
)

// packetSocket is a socket of packets.
type packetSocket struct {
	addr net.Addr
	file unixSocket // goes with the socket
	conn packetConn
}

// newPacketSocket takes over conn.
func newPacketSocket(conn packetConn, file unixSocket) (*packetSocket, error) {
	return &packetSocket{conn.LocalAddr(), file, conn}, nil
}

func (s *packetSocket) isUDP() bool {
	_, ok := s.addr.(*net.UDPAddr)
	return ok
}

// setReadBuffer asks for a buffer of so many bytes.
func (s *packetSocket) setReadBuffer(bytes int) error { return s.conn.SetReadBuffer(bytes) }

// interrupt ends a read that waits.
func (s *packetSocket) interrupt() { _ = s.conn.SetReadDeadline(time.Now()) }

// waitUntil sets how long reads wait.
func (s *packetSocket) waitUntil(end time.Time) { _ = s.conn.SetReadDeadline(end) }

func (s *packetSocket) close() error { return errors.Join(s.file.remove(), s.conn.Close()) }
