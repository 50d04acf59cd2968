package chaos

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// mode is what a relay does with what goes through it.
type mode int

const (
	through   mode = iota
	cut            // connections break, and new ones break at once
	silent         // connections come about and stay, and nothing comes through
	slow           // each answer comes late
	garbled        // answers have bytes changed
	throttled      // Kafka's answers ask for pauses of days
)

// slowness is how late an answer is on a slow link.
const slowness = 350 * time.Millisecond

// damagedPercent is how many of Kafka's answers are garbled, or ask for pauses.
const damagedPercent = 30

// tcpRelay forwards connections to a server. Those of other servers, its replica and
// sentinels, pass unchanged in every mode: a replica that took garbage for data would keep
// it after the fault, and a sentinel could be sent to a stranger's port.
type tcpRelay struct {
	listener net.Listener
	target   string
	garbler  *testenv.Garbler // of Kafka's answers; with nil any bytes are changed
	work     sync.WaitGroup

	mu   sync.Mutex
	mode mode
	rng  *rand.Rand // for garbage
	ends map[net.Conn]*tcpLink
}

// tcpLink is one connection, of two ends.
type tcpLink struct {
	silent bool // for good
	peer   bool // the client is another server
}

// peers are in the first words of other servers: of a replica, and of a sentinel, which
// gives its name.
var peers = [][]byte{[]byte("\r\nPSYNC\r\n"), []byte("\r\nsentinel-")}

func isPeer(question []byte) bool {
	return slices.ContainsFunc(peers, func(p []byte) bool { return bytes.Contains(question, p) })
}

// newTCPRelay returns a relay to a server. One to Kafka has a garbler, which knows where
// answers begin and end.
func newTCPRelay(target string, seed uint64, garbler *testenv.Garbler) (*tcpRelay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if garbler != nil {
		listener = garbler.Wrap(listener)
	}
	r := &tcpRelay{
		listener: listener, target: target, garbler: garbler, rng: rand.New(rand.NewPCG(seed, 1)),
		ends: make(map[net.Conn]*tcpLink),
	}
	r.work.Go(r.accept)
	return r, nil
}

func (r *tcpRelay) addr() string { return r.listener.Addr().String() }

func (r *tcpRelay) close() {
	r.listener.Close()
	r.set(cut)
	r.mu.Lock()
	for end := range r.ends { // those of other servers, too
		end.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}

// set changes the mode. A connection that was silent stays so, as one does that a
// firewall has forgotten: only new ones come through.
func (r *tcpRelay) set(m mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode = m
	if r.garbler != nil {
		switch m {
		case garbled:
			r.garbler.Start(damagedPercent)
		case throttled:
			r.garbler.StartThrottling(damagedPercent)
		default:
			r.garbler.Stop()
		}
	}
	for end, link := range r.ends {
		switch {
		case link.peer:
		case m == cut:
			end.Close()
		case m == silent:
			link.silent = true
		}
	}
}

func (r *tcpRelay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.connect(conn) })
	}
}

func (r *tcpRelay) connect(client net.Conn) {
	server, err := net.DialTimeout("tcp", r.target, time.Second)
	if err != nil {
		client.Close()
		return
	}
	r.mu.Lock()
	if r.mode == cut {
		r.mu.Unlock()
		client.Close()
		server.Close()
		return
	}
	link := &tcpLink{silent: r.mode == silent}
	r.ends[client], r.ends[server] = link, link
	r.work.Go(func() { r.forward(server, client, false) })
	r.work.Go(func() { r.forward(client, server, true) })
	r.mu.Unlock()
}

func (r *tcpRelay) forward(to, from net.Conn, answers bool) {
	defer func() {
		to.Close()
		from.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.ends, to)
		delete(r.ends, from)
	}()
	read := readSome
	if answers && r.garbler != nil {
		read = readAnswer
	}
	buf := make([]byte, 32<<10)
	for {
		data, err := read(from, buf)
		if r.treat(from, data, answers) {
			if _, err := to.Write(data); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func readSome(from net.Conn, buf []byte) ([]byte, error) {
	n, err := from.Read(buf)
	return buf[:n], err
}

// readAnswer reads one answer of Kafka's, which begins with its length in four bytes.
func readAnswer(from net.Conn, buf []byte) ([]byte, error) {
	const head = 4
	n, err := io.ReadFull(from, buf[:head])
	if err != nil {
		return buf[:n], err
	}
	length := head + int(binary.BigEndian.Uint32(buf))
	if length > len(buf) {
		buf = append(make([]byte, 0, length), buf[:head]...)
	}
	n, err = io.ReadFull(from, buf[head:length])
	return buf[:head+n], err
}

// treat does to the data what the mode says, and reports whether it goes on.
func (r *tcpRelay) treat(from net.Conn, data []byte, answers bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	link := r.ends[from]
	if link == nil {
		return false // the other end is closed
	}
	if !answers && !link.peer && isPeer(data) {
		link.peer = true
	}
	switch {
	case link.peer:
	case link.silent:
		return false
	case r.mode == slow && answers:
		r.mu.Unlock()
		time.Sleep(slowness)
		r.mu.Lock()
	case r.mode == garbled && r.garbler == nil && answers && len(data) > 0:
		for range 1 + len(data)/32 {
			data[r.rng.IntN(len(data))] = byte(r.rng.Uint32())
		}
	}
	return true
}
