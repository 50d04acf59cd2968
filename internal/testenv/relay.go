package testenv

import (
	byteorder "encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Relay forwards TCP connections to a server and simulates a failing network. It is safe for
// concurrent use.
type Relay struct {
	config   RelayConfig
	listener net.Listener
	target   string
	delay    atomic.Int64
	lose     atomic.Bool
	change   atomic.Pointer[func([]byte) []byte]
	work     sync.WaitGroup

	mu    sync.Mutex
	state LinkState
	ends  map[net.Conn]*relayedConn // both ends of every connection
}

// RelayConfig adapts a [Relay] to a protocol. All fields are optional.
type RelayConfig struct {
	// Garbler damages answers. The relay then forwards whole answers, which must begin with their
	// length in four bytes, like Kafka's.
	Garbler *Garbler
	// Spare reports whether a connection with this data from the client passes unchanged in every
	// state.
	Spare func(question []byte) bool
}

type relayedConn struct {
	isSilent atomic.Bool // never reset
	isSpared atomic.Bool
}

// LinkState is how a [Relay] treats connections.
type LinkState int

// The states of a link.
const (
	LinkUp     LinkState = iota
	LinkCut              // connections break, and new ones break at once
	LinkSilent           // connections open and stay open, but nothing comes through
)

// NewRelay returns a relay to a server. It is up until the test ends.
func NewRelay(t testing.TB, target string) *Relay { return NewRelayWith(t, target, RelayConfig{}) }

// NewRelayWith is like [NewRelay], but with a config.
func NewRelayWith(t testing.TB, target string, config RelayConfig) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config.Garbler != nil {
		listener = config.Garbler.Wrap(listener)
	}
	r := &Relay{config: config, listener: listener, target: target, ends: make(map[net.Conn]*relayedConn)}
	r.work.Go(r.accept)
	t.Cleanup(func() {
		listener.Close()
		r.Set(LinkCut)
		r.mu.Lock()
		for end := range r.ends { // including spared ones
			end.Close()
		}
		r.mu.Unlock()
		r.work.Wait()
	})
	return r
}

// Addr returns the address on which the relay listens.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Set changes the state. A connection that has been silent stays dead, as if a firewall had
// forgotten it. Only new connections come through.
func (r *Relay) Set(state LinkState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
	for end, conn := range r.ends {
		switch {
		case conn.isSpared.Load():
		case state == LinkCut:
			end.Close()
		case state == LinkSilent:
			conn.isSilent.Store(true)
		}
	}
}

// Delay delays each read of the server's answers by d from now on.
func (r *Relay) Delay(d time.Duration) { r.delay.Store(int64(d)) }

// LoseAnswer drops the server's next answer and breaks its connection.
func (r *Relay) LoseAnswer() { r.lose.Store(true) }

// ChangeAnswers replaces each read of the server's answers by the result of f from now on. A nil
// f changes nothing. Several connections may call f concurrently.
func (r *Relay) ChangeAnswers(f func(answer []byte) []byte) {
	if f == nil {
		r.change.Store(nil)
		return
	}
	r.change.Store(&f)
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.connect(client) })
	}
}

func (r *Relay) connect(client net.Conn) {
	server, err := net.DialTimeout("tcp", r.target, time.Second)
	if err != nil {
		client.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == LinkCut {
		client.Close()
		server.Close()
		return
	}
	conn := new(relayedConn)
	conn.isSilent.Store(r.state == LinkSilent)
	r.ends[client], r.ends[server] = conn, conn
	r.work.Go(func() { r.forward(conn, server, client, false) })
	r.work.Go(func() { r.forward(conn, client, server, true) })
}

func (r *Relay) forward(conn *relayedConn, to, from net.Conn, answers bool) {
	defer func() {
		to.Close()
		from.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.ends, to)
		delete(r.ends, from)
	}()
	read := func(buf []byte) ([]byte, error) {
		n, err := from.Read(buf)
		return buf[:n], err
	}
	if answers && r.config.Garbler != nil {
		read = func(buf []byte) ([]byte, error) { return readWhole(from, buf) }
	}
	buf := make([]byte, 64<<10)
	for {
		data, err := read(buf)
		if !answers && r.config.Spare != nil && r.config.Spare(data) {
			conn.isSpared.Store(true)
		}
		if answers && len(data) > 0 && !conn.isSpared.Load() {
			if r.lose.CompareAndSwap(true, false) {
				return
			}
			time.Sleep(time.Duration(r.delay.Load()))
			if change := r.change.Load(); change != nil {
				data = (*change)(data)
			}
		}
		if !conn.isSilent.Load() {
			if _, err := to.Write(data); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readWhole reads one answer, which begins with its length in four bytes.
func readWhole(from io.Reader, buf []byte) ([]byte, error) {
	const head = 4
	n, err := io.ReadFull(from, buf[:head])
	if err != nil {
		return buf[:n], err
	}
	length := head + int(byteorder.BigEndian.Uint32(buf))
	if length > len(buf) {
		buf = append(make([]byte, 0, length), buf[:head]...)
	}
	n, err = io.ReadFull(from, buf[head:length])
	return buf[:head+n], err
}
