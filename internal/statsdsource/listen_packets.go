package statsdsource

import (
	"context"
	"net"
	"syscall"

	"github.com/hotparam/hotparam/internal/wire"
)

// listenPackets opens the sockets of an address: one per reader for UDP, one for a Unix path.
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

// listenUDP opens one socket per reader at an address.
func listenUDP(ctx context.Context, addr wire.Address, readers int) ([]packetConn, error) {
	// The first socket binds the address exclusively, so that the address is not shared with
	// another daemon by mistake. Then it is made to share with the others.
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

// closeAll closes sockets that have received nothing.
func closeAll(conns []packetConn) {
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// packetConn is a packet socket as opened by the net package, UDP or Unix.
type packetConn interface {
	net.Conn
	syscall.Conn
	SetReadBuffer(bytes int) error
}
