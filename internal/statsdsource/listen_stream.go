package statsdsource

import (
	"context"
	"net"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// streamListener is a listener for connections, TCP or Unix.
type streamListener interface {
	net.Listener
	SetDeadline(time.Time) error
}

// listenStream opens the listener of an address.
func listenStream(ctx context.Context, addr wire.Address) (streamListener, error) {
	if addr.Network == "unix" {
		return listenUnixStream(ctx, addr.Addr)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, addr.Network, addr.Addr)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}
