package statsdsource

import (
	"context"
	"net"
	"syscall"

	"github.com/hotparam/hotparam/wire"
)

// listenPackets opens the sockets of an address: of UDP as many as there are to be
// readers, of a Unix path one.
func listenPackets(ctx context.Context, addr wire.Address, readers int) ([]packetConn, error) {
	if addr.Network == "unixgram" {
		conn, err := listenUnixPackets(ctx, addr.Addr)
		return []packetConn{conn}, err
	}
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
		for _, conn := range conns {
			_ = conn.Close() // nothing came to it
		}
		return nil, err
	}
	return conns, nil
}

// packetConn is a socket of packets, UDP or Unix.
type packetConn interface {
	net.Conn
	syscall.Conn
	SetReadBuffer(bytes int) error
}
