//go:build !linux

package statsdsource

import (
	"net"
	"net/netip"
	"time"
)

// readBatch is the number of messages of one read. On this system a message is a packet.
const readBatch = 1

// receiver reads packets.
type receiver struct {
	socket *packetSocket
	buffer []byte
	n      int
	full   bool         // the last read may have left packets in the socket
	udp    *net.UDPConn // nil if senders' addresses are not requested
	from   netip.Addr
}

func newReceiver(socket *packetSocket) *receiver {
	return &receiver{socket: socket, buffer: make([]byte, maxDatagram+1)}
}

// read waits for packets and returns their number. They are valid until the next read.
func (r *receiver) read() (n int, err error) {
	if r.udp != nil {
		var from netip.AddrPort
		r.n, from, err = r.udp.ReadFromUDPAddrPort(r.buffer)
		r.from = from.Addr().Unmap()
	} else {
		r.n, err = r.socket.conn.Read(r.buffer)
	}
	if r.full = err == nil; err != nil {
		return 0, err
	}
	return 1, nil
}

// askSources requests the senders' addresses from now on.
func (r *receiver) askSources() { r.udp, _ = r.socket.conn.(*net.UDPConn) }

// source returns the address of the packet's sender, or the zero address if addresses are not
// requested.
func (r *receiver) source(int) netip.Addr { return r.from }

// message returns the packet that was read, its length, and its arrival.
func (r *receiver) message(_ int, now, _ time.Time) (packets []byte, length int, when time.Time) {
	return r.buffer[:r.n], r.n, now
}
