package bench

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/yardstick"
)

// minimal is the least code that reads these lines, and no others: no daemon around it, no
// window, no bounds, and one prefix that it skips unread. It shares no code with the aggregator,
// which is compared with it.
type minimal struct {
	conns []*net.UDPConn
	sum   atomic.Int64
}

// newMinimal opens a socket for each reader. The sockets share a port.
func newMinimal(ctx context.Context, readers int) (*minimal, error) {
	m, addr := new(minimal), "127.0.0.1:0"
	var lc net.ListenConfig
	if readers > 1 {
		lc.Control = sharePort
	}
	for range max(1, readers) {
		conn, err := lc.ListenPacket(ctx, "udp", addr)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.conns = append(m.conns, conn.(*net.UDPConn))
		_ = conn.(*net.UDPConn).SetReadBuffer(8 << 20) // as much as the aggregator requests
		addr = conn.LocalAddr().String()
	}
	return m, nil
}

func (m *minimal) addr() net.Addr { return m.conns[0].LocalAddr() }
func (m *minimal) lines() int64   { return m.sum.Load() }

func (m *minimal) close() (err error) {
	for _, conn := range m.conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}

func (m *minimal) run(ctx context.Context) error {
	defer func() { _ = m.close() }() // everything has been read
	errs := make([]error, len(m.conns))
	var reading sync.WaitGroup
	for i, conn := range m.conns {
		reading.Go(func() { errs[i] = m.read(ctx, conn) })
	}
	reading.Wait()
	return errors.Join(errs...)
}

func (m *minimal) read(ctx context.Context, conn *net.UDPConn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) })
	defer stop()
	buf, counts := make([]byte, 65535), make(map[string]*int64)
	for {
		n, _, err := conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
		m.sum.Add(CountLines(buf[:n], counts))
	}
}

// CountLines adds the counts in a packet's lines to counts, by key, and returns the number of
// lines. The lines have the form that a sender of [Ingest] writes.
func CountLines(packet []byte, counts map[string]*int64) (lines int64) {
	for len(packet) > 0 {
		key, n, tail, ok := yardstick.CutLine(packet, len(linePrefix))
		packet = tail
		if !ok {
			continue
		}
		count, found := counts[string(key)]
		if !found {
			count = new(int64)
			counts[string(key)] = count
		}
		*count += n
		lines++
	}
	return lines
}
