package testenv

import (
	byteorder "encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
)

// Garbler is a faulty network for servers that send each answer with one Write and begin it with
// its length in four bytes, like Kafka. While it is on, it damages some of the answers. Damage to
// a connection is permanent: one that was cut off within an answer stays silent. The same seed
// damages the same answers in the same way, if they come in the same order.
type Garbler struct {
	mu       sync.Mutex
	rand     *rand.Rand
	isOn     bool
	percent  int
	throttle bool
	damaged  int
}

// NewGarbler returns a Garbler that is off.
func NewGarbler(seed uint64) *Garbler { return &Garbler{rand: rand.New(rand.NewPCG(seed, 1))} }

// Start damages percent of the answers from now on.
func (g *Garbler) Start(percent int) { g.start(percent, false) }

// StartThrottling sets the last four bytes of percent of the answers, the throttle
// time of Kafka's answers to a producer, to 24 days.
func (g *Garbler) StartThrottling(percent int) { g.start(percent, true) }

// Stop stops damaging answers.
func (g *Garbler) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isOn, g.percent, g.throttle = false, 0, false
}

func (g *Garbler) start(percent int, throttle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isOn, g.percent, g.throttle = true, percent, throttle
}

// Damaged returns the number of damaged answers.
func (g *Garbler) Damaged() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.damaged
}

// Listen works like net.Listen, but the connections go through the Garbler.
func (g *Garbler) Listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	return g.Wrap(l), nil
}

// Wrap returns a listener whose connections go through the Garbler.
func (g *Garbler) Wrap(l net.Listener) net.Listener {
	return &garbledListener{Listener: l, garbler: g}
}

type garbledListener struct {
	net.Listener
	garbler *Garbler
}

func (l *garbledListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &garbledConn{Conn: c, garbler: l.garbler}, nil
}

type garbledConn struct {
	net.Conn
	garbler *Garbler

	mu       sync.Mutex
	isSilent bool
}

// damage is a damaged answer and the state of the connection after it.
type damage struct {
	bytes         []byte
	silent, close bool
}

// longest is the largest throttle time that an answer can name, in milliseconds.
const longest = 1<<31 - 1

func (g *Garbler) damage(answer []byte) damage {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOn || g.rand.IntN(100) >= g.percent || len(answer) < 12 {
		return damage{bytes: answer}
	}
	g.damaged++
	garbled := append([]byte(nil), answer...)
	if g.throttle {
		byteorder.BigEndian.PutUint32(garbled[len(garbled)-4:], longest)
		return damage{bytes: garbled}
	}
	switch g.rand.IntN(8) {
	case 0: // the throttle time at the end of an answer
		byteorder.BigEndian.PutUint32(garbled[len(garbled)-4:], uint32(g.rand.Int32()))
	case 1: // the throttle time at the beginning
		if len(garbled) >= 16 {
			byteorder.BigEndian.PutUint32(garbled[8+g.rand.IntN(2):], uint32(g.rand.Int32()))
		}
	case 2, 3: // some bits of the body
		for range 1 + g.rand.IntN(8) {
			garbled[8+g.rand.IntN(len(garbled)-8)] ^= 1 << g.rand.IntN(8)
		}
	case 4: // noise of the right length
		for i := range garbled[4:] {
			garbled[4+i] = byte(g.rand.Uint32())
		}
	case 5: // bytes at the beginning, which may be the length
		for range 1 + g.rand.IntN(4) {
			garbled[g.rand.IntN(12)] = byte(g.rand.Uint32())
		}
	case 6: // the end is missing and the connection closes
		return damage{bytes: garbled[:g.rand.IntN(len(garbled))], close: true}
	case 7: // the end is missing and the connection stays open
		return damage{bytes: garbled[:g.rand.IntN(len(garbled))], silent: true}
	}
	return damage{bytes: garbled}
}

// Write writes the answer, which the Garbler may damage.
func (c *garbledConn) Write(answer []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isSilent {
		return len(answer), nil
	}
	d := c.garbler.damage(answer)
	c.isSilent = d.silent
	if n, err := c.Conn.Write(d.bytes); err != nil {
		return n, err
	}
	if d.close {
		_ = c.Conn.Close()
	}
	return len(answer), nil
}
