package statsdsource

import (
	"context"
	"net"
	"syscall"

	"github.com/hotparam/hotparam/internal/wire"
)

// listenPackets opens the sockets of an address: of UDP as many as there are to be
// readers, of a Unix path one.
func listenPackets(ctx context.Context, addr wire.Address, readers int) ([]*packetSocket, error) {
	if addr.Network == "unixgram" {
		socket, err := listenUnixPackets(ctx, addr.Addr)
		return []*packetSocket{socket}, err
	}
	conns, err := listenUDP(ctx, addr, readers)
	if err != nil {
		return nil, err
	}
	var sockets []*packetSocket
	for i, conn := range conns {
		socket, err := newPacketSocket(conn, unixSocket{})
		if err != nil {
			closeAll(conns[i+1:])
			for _, s := range sockets {
				_ = s.close()
			}
			return nil, err
		}
		sockets = append(sockets, socket)
	}
	return sockets, nil
}

// listenUDP opens as many sockets at an address as there are to be readers.
func listenUDP(ctx context.Context, addr wire.Address, readers int) ([]packetConn, error) {
	// The first has the address for itself, so that another daemon's is not
	// shared by mistake; then it shares with the others.
	var lc net.ListenConfig
	first, err := lc.ListenPacket(ctx, addr.Network, addr.Addr)
	if err != nil {
		return nil, err
	}
	conns := []packetConn{first.(*net.UDPConn)}
	if readers > 1 {
		err = sharePort(conns[0])
	}
	lc.Control = controlSharePort
	for err == nil && len(conns) < readers {
		var next net.PacketConn
		if next, err = lc.ListenPacket(ctx, addr.Network, first.LocalAddr().String()); err == nil {
			conns = append(conns, next.(*net.UDPConn))
		}
	}
	if err != nil {
		closeAll(conns)
		return nil, err
	}
	return conns, nil
}

// closeAll closes sockets to which nothing came.
func closeAll(conns []packetConn) {
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// packetConn is a socket of packets as the net package opens it, UDP or Unix.
type packetConn interface {
	net.Conn
	syscall.Conn
	SetReadBuffer(bytes int) error
}
