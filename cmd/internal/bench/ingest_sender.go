package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/hotparam/hotparam/internal/yardstick"
)

// The stream of a sender: "shop.hot_param.b=2&q=1:1|c", 20 lines a packet, 100,000 values of q by
// Zipf's law with exponent 1.1.
const (
	linePrefix     = "shop.hot_param."
	linesPerPacket = 20
	lineValues     = 100_000
	lineZipf       = 1.1
	packets        = 1 << 13 // number after which the stream repeats
	sendBatch      = 8       // messages per system call, where the system supports several
	segmentsEach   = 32      // most packets in one message
	senderSockets  = 16      // several, so that readers that share a port each get some
)

// senderConfig is the address and the rate of a sender. A rate of zero means as fast as possible,
// merged or not.
type senderConfig struct {
	Addr   string
	Rate   int
	Merged bool
}

// appendLine appends one line for a value.
func appendLine(dst []byte, value int) []byte {
	return append(appendKey(append(dst, linePrefix...), value), ":1|c"...)
}

func appendKey(dst []byte, value int) []byte {
	return strconv.AppendInt(append(dst, "b=2&q="...), int64(value), 10)
}

// Packets generates n packets of lines.
func Packets(n int) [][]byte {
	zipf := yardstick.NewZipf(yardstick.NewRand(1), lineZipf, lineValues)
	made := make([][]byte, n)
	for i := range made {
		var p []byte
		for line := range linesPerPacket {
			if line > 0 {
				p = append(p, '\n')
			}
			p = appendLine(p, zipf.Draw())
		}
		made[i] = p
	}
	return made
}

// runSender answers when it begins to send, and at the end of its input with the number of lines
// that it has sent.
func runSender(ctx context.Context, l *link, c senderConfig) error {
	var conns []*ipv4.PacketConn
	var d net.Dialer
	var socket *net.UDPConn
	for range senderSockets {
		conn, err := d.DialContext(ctx, "udp", c.Addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		socket = conn.(*net.UDPConn)
		conns = append(conns, ipv4.NewPacketConn(socket))
	}
	made := Packets(packets)
	messages := singles(made)
	if c.Merged && c.Rate == 0 {
		messages = joined(made, socket)
	}
	var over atomic.Bool
	sent, done := int64(0), make(chan error, 1)
	go func() {
		var err error
		if c.Rate > 0 {
			sent, err = trickle(conns, messages, c.Rate, &over)
		} else {
			sent, err = flood(conns, messages, &over)
		}
		done <- err
	}()
	err := l.send(true)
	if err == nil {
		err = l.untilEnd()
	}
	over.Store(true)
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	return l.send(sent * linesPerPacket)
}

// message holds one or more packets.
type message struct {
	ipv4.Message
	packets int64
}

// singles returns a message for each packet.
func singles(packets [][]byte) (all []message) {
	for _, p := range packets {
		all = append(all, message{ipv4.Message{Buffers: [][]byte{p}}, 1})
	}
	return all
}

// joined returns messages that each hold packets of one length, which the system splits. A sender
// that pays for each packet separately is slower than a good receiver. If the system cannot split
// messages, joined returns the same as [singles].
func joined(packets [][]byte, conn *net.UDPConn) (all []message) {
	if segments(conn, 1) == nil {
		return singles(packets)
	}
	byLength := make(map[int][][]byte)
	for _, p := range packets {
		byLength[len(p)] = append(byLength[len(p)], p)
	}
	for _, length := range slices.Sorted(maps.Keys(byLength)) {
		for some := range slices.Chunk(byLength[length], segmentsEach) {
			all = append(all, message{ipv4.Message{Buffers: [][]byte{bytes.Join(some, nil)}, OOB: segments(conn, length)}, int64(len(some))})
		}
	}
	rnd := yardstick.NewRand(2)
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// flood sends the messages repeatedly as fast as the system accepts them, and returns the number
// of accepted packets.
func flood(conns []*ipv4.PacketConn, messages []message, over *atomic.Bool) (sent int64, err error) {
	batch := make([]ipv4.Message, sendBatch)
	for next, turn := 0, 0; !over.Load(); turn++ {
		for i := range batch {
			batch[i] = messages[(next+i)%len(messages)].Message
		}
		n, err := conns[turn%len(conns)].WriteBatch(batch, 0)
		if err != nil {
			return sent, fmt.Errorf("send: %w", err)
		}
		for range n {
			sent += messages[next].packets
			next = (next + 1) % len(messages)
		}
	}
	return sent, nil
}

// trickle sends packets at random times, rate of them per second on average, and returns the
// number sent.
func trickle(conns []*ipv4.PacketConn, packets []message, rate int, over *atomic.Bool) (sent int64, err error) {
	exactSleep()
	rnd, due := yardstick.NewRand(3), time.Now()
	for !over.Load() {
		due = due.Add(time.Duration(rnd.ExpFloat64() * float64(time.Second) / float64(rate)))
		if wait := time.Until(due); wait > 0 {
			pause(wait)
		}
		n := int(sent)
		if _, err := conns[n%len(conns)].WriteBatch([]ipv4.Message{packets[n%len(packets)].Message}, 0); err != nil {
			return sent, fmt.Errorf("send: %w", err)
		}
		sent++
	}
	return sent, nil
}
