package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

// What a sender sends: "shop.hot_param.b=2&q=1:1|c", 20 lines a packet, 100,000
// values of q by Zipf's law with exponent 1.1.
const (
	linePrefix     = "shop.hot_param."
	linesPerPacket = 20
	lineValues     = 100_000
	lineZipf       = 1.1
	packets        = 1 << 13 // before the stream starts over
	sendBatch      = 64      // packets of one system call, where the system can
)

type senderConfig struct{ Addr string }

// appendLine appends one line about a value.
func appendLine(dst []byte, value int) []byte {
	return append(appendKey(append(dst, linePrefix...), value), ":1|c"...)
}

func appendKey(dst []byte, value int) []byte {
	return strconv.AppendInt(append(dst, "b=2&q="...), int64(value), 10)
}

// Packets makes n packets of lines.
func Packets(n int) [][]byte {
	zipf := NewZipf(newRand(1), lineZipf, lineValues)
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

// runSender answers when it begins to send, and at the end of its input how many
// lines it has sent.
func runSender(ctx context.Context, l *link) error {
	var c senderConfig
	if err := l.configure(&c); err != nil {
		return err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", c.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	messages := make([]ipv4.Message, packets)
	for i, p := range Packets(packets) {
		messages[i].Buffers = [][]byte{p}
	}
	var over atomic.Bool
	sent, done := int64(0), make(chan error, 1)
	go func() {
		var err error
		sent, err = flood(ipv4.NewPacketConn(conn.(net.PacketConn)), messages, &over)
		done <- err
	}()
	err = l.send(true)
	if err == nil {
		err = l.untilEnd()
	}
	over.Store(true)
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	return l.send(sent * linesPerPacket)
}

// flood sends the messages over and over as fast as the system takes them, and returns
// how many it took.
func flood(conn *ipv4.PacketConn, messages []ipv4.Message, over *atomic.Bool) (sent int64, err error) {
	for next := 0; !over.Load(); next %= len(messages) {
		n, err := conn.WriteBatch(messages[next:min(next+sendBatch, len(messages))], 0)
		if err != nil {
			return sent, fmt.Errorf("send: %w", err)
		}
		sent += int64(n)
		next += n
	}
	return sent, nil
}
