package rls

import (
	"net"
	"sync"
)

// admitting is a listener that closes connections from addresses that are not allowed, and
// those that are too many. Unlike a limit that has them wait, it keeps no descriptors of files
// in the queue of the kernel.
type admitting struct {
	net.Listener
	door *Door
}

// Accept returns the next connection that may stay.
func (l admitting) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.door.admit(c.RemoteAddr()) {
			return &admitted{Conn: c, door: l.door}, nil
		}
		_ = c.Close()
	}
}

// admit reports whether a connection from the address may stay, and counts it.
func (d *Door) admit(from net.Addr) bool {
	switch {
	case !d.config.Allow.Allow(from):
		d.stats.Strangers.Add(1)
		d.complain.add(complainStranger, "closed a connection from an address that is not allowed", "address", from.String())
		return false
	case d.stats.Connections.Add(1) > int64(d.config.MaxConnections):
		d.stats.Connections.Add(-1)
		d.stats.Full.Add(1)
		d.complain.add(complainFull, "closed a connection: there are too many", "connections", d.config.MaxConnections)
		return false
	}
	d.stats.Accepted.Add(1)
	return true
}

// admitted is a connection that counts until it is closed.
type admitted struct {
	net.Conn
	door *Door
	once sync.Once
}

// Close closes the connection.
func (c *admitted) Close() error {
	c.once.Do(func() { c.door.stats.Connections.Add(-1) })
	return c.Conn.Close()
}
