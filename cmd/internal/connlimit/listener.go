package connlimit

import (
	"net"
	"os"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Listener returns a listener of l's connections, which are of type *[Conn]. It closes
// connections that are not admitted. Delaying Accept was rejected: the connections would stay in
// the kernel's queue, where a peer takes them for open and waits for answers.
func (l *Limiter) Listener(inner net.Listener) net.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners++
	l.keepSpares()
	return &listener{Listener: inner, limiter: l}
}

type listener struct {
	net.Listener
	limiter *Limiter
	once    sync.Once
}

// Accept returns the next admitted connection. If there is no file descriptor, it frees one. It
// returns an error only if it cannot, or for another reason.
func (l *listener) Accept() (net.Conn, error) {
	onSpare := false
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			if c := l.limiter.admit(conn, onSpare); c != nil {
				return c, nil
			}
			_ = conn.Close()
			l.limiter.mu.Lock()
			l.limiter.keepSpares()
			l.limiter.mu.Unlock()
			onSpare = false
			continue
		}
		freed := false
		if base.IsOutOfFiles(err) {
			freed, onSpare = l.limiter.freeDescriptor()
		}
		if !freed {
			return nil, err
		}
	}
}

// Close closes the listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.limiter.mu.Lock()
		defer l.limiter.mu.Unlock()
		if l.limiter.listeners--; l.limiter.listeners == 0 {
			for len(l.limiter.spares) > 0 {
				l.limiter.freeSpare()
			}
		}
	})
	return l.Listener.Close()
}

// maxSpares is the number of descriptors kept for Config.Reserve. It allows as many health
// checks at once.
const maxSpares = 4

// keepSpares opens missing spare descriptors, as far as possible. The caller holds mu.
func (l *Limiter) keepSpares() {
	for l.listeners > 0 && len(l.spares) < min(maxSpares, l.config.Reserve) {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		l.spares = append(l.spares, f)
	}
}

// freeSpare closes a spare descriptor. The caller holds mu.
func (l *Limiter) freeSpare() {
	last := len(l.spares) - 1
	_ = l.spares[last].Close()
	l.spares = l.spares[:last]
}

// justCame is the age up to which an idle connection is kept when descriptors are short. Accept
// then fails before anyone has connected, and the newest connection would be closed at once.
const justCame = time.Second

// freeDescriptor closes an idle connection, or else a spare. It reports whether it closed one,
// and whether that was a spare.
func (l *Limiter) freeDescriptor() (freed, spare bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Starved++
	before := time.Now().Add(-justCame)
	if c := l.idlest(func(c *Conn) bool { return !c.since.After(before) }); c != nil {
		l.remove(c)
		c.Abort() // does not block
		return true, false
	}
	if len(l.spares) == 0 {
		return false, false
	}
	l.freeSpare()
	return true, true
}
