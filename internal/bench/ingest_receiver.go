package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/aggregator/statsdsource"
)

// Kinds of receiver.
const (
	kindAggregator = "aggregator"
	kindMinimal    = "minimal reader"
)

type receiverConfig struct{ Kind string }

// receiver counts what comes to a socket.
type receiver interface {
	addr() net.Addr
	// run reads until ctx ends, and then what the socket still holds.
	run(ctx context.Context) error
	// lines is how many were counted. It is safe for concurrent use.
	lines() int64
}

// runReceiver answers its address, then each request with a reading, and at the end
// of its input the last one, when all that had come is counted.
func runReceiver(ctx context.Context, l *link) error {
	var c receiverConfig
	if err := l.configure(&c); err != nil {
		return err
	}
	var r receiver
	var err error
	switch c.Kind {
	case kindAggregator:
		r, err = newWhole(ctx)
	case kindMinimal:
		r, err = newMinimal(ctx)
	default:
		err = fmt.Errorf("there is no receiver %q", c.Kind)
	}
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.run(running) }()
	err = l.send(r.addr().String())
	for err == nil {
		var what string
		var ok bool
		if ok, err = l.receive(&what); !ok || err != nil {
			break
		}
		err = l.sendReading(r)
	}
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	return l.sendReading(r)
}

func (l *link) sendReading(r receiver) error {
	cpu, err := cpuTime()
	if err != nil {
		return err
	}
	return l.send(reading{Lines: r.lines(), CPU: cpu, At: monotonic()})
}

// whole is the aggregator as the daemon runs it, with a publisher that keeps
// nothing: no key reaches the threshold.
type whole struct{ *statsdsource.Source }

func newWhole(ctx context.Context) (whole, error) {
	a, err := statsdsource.New(ctx, statsdsource.Config{
		Trust: &decode.Trust{Caps: decode.DefaultCaps}, // as the daemon
		Rules: lineRules(hotparam.NewThreshold(unreachable)), Publisher: nobody{}, Listen: []string{"127.0.0.1:0"},
	})
	return whole{a}, err
}

func (w whole) addr() net.Addr                { return w.Addr() }
func (w whole) run(ctx context.Context) error { return w.Run(ctx) }

// lines are those that were decoded, less those that came too late for a window.
func (w whole) lines() int64 {
	s := w.Stats()
	return s.Decoder.Counts - s.Detector.Late
}

// minimal is the least that takes in these lines, and no others: no daemon around
// it, no window, no bounds, one prefix that it steps over unread.
type minimal struct {
	conn   *net.UDPConn
	counts map[string]*int64
	sum    atomic.Int64
}

func newMinimal(ctx context.Context) (*minimal, error) {
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &minimal{conn: conn.(*net.UDPConn), counts: make(map[string]*int64)}
	_ = m.conn.SetReadBuffer(8 << 20) // as much as the aggregator asks for
	return m, nil
}

func (m *minimal) addr() net.Addr { return m.conn.LocalAddr() }
func (m *minimal) lines() int64   { return m.sum.Load() }

func (m *minimal) run(ctx context.Context) error {
	defer func() { _ = m.conn.Close() }() // all is read
	stop := context.AfterFunc(ctx, func() { _ = m.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) })
	defer stop()
	buf := make([]byte, 65535)
	for {
		n, _, err := m.conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
		m.sum.Add(CountLines(buf[:n], m.counts))
	}
}

// CountLines adds up by key the lines of a packet, which are as a sender of
// [Ingest] writes them, and returns how many there were.
func CountLines(packet []byte, counts map[string]*int64) (lines int64) {
	for len(packet) > 0 {
		line := packet
		if end := bytes.IndexByte(packet, '\n'); end >= 0 {
			line, packet = packet[:end], packet[end+1:]
		} else {
			packet = nil
		}
		colon := bytes.IndexByte(line, ':')
		if colon < len(linePrefix) || !bytes.HasSuffix(line, []byte("|c")) {
			continue
		}
		n, err := strconv.ParseInt(string(line[colon+1:len(line)-len("|c")]), 10, 64)
		if err != nil {
			continue
		}
		key := line[len(linePrefix):colon]
		count, ok := counts[string(key)]
		if !ok {
			count = new(int64)
			counts[string(key)] = count
		}
		*count += n
		lines++
	}
	return lines
}
