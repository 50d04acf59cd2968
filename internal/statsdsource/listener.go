package statsdsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

// DefaultListen is the default address: the port that all StatsD clients send to.
const DefaultListen = "127.0.0.1:8125"

// reader reads packets until ctx ends and the sockets are empty, and passes them to the
// shards through a decoder and a feed of its own.
type reader interface {
	run(ctx context.Context, d *decode.Decoder, out feed) error
}

// listener takes StatsD lines from all addresses: a reader for each socket of packets,
// and one for all connections.
type listener struct {
	addrs   []net.Addr
	packets []*packetReader
	streams *streamReader // nil: no address has connections
	stats   *listenerStats
	// decoding is held for reading while a reader decodes and counts what it has read, so
	// whoever has the lock stands between two reads of each.
	decoding sync.RWMutex
}

// listenStatsD opens the addresses; each of UDP with as many sockets as there are to
// be readers.
func listenStatsD(ctx context.Context, addresses []string, readers int) (*listener, error) {
	l := &listener{stats: new(listenerStats)}
	for _, a := range addresses {
		addr, err := wire.ParseAddress(a)
		if err == nil {
			err = l.open(ctx, addr, readers)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("statsd source: listener on %s: %w", a, err), l.close())
		}
	}
	return l, nil
}

func (l *listener) open(ctx context.Context, addr wire.Address, readers int) error {
	if addr.IsStream() {
		opened, err := listenStream(ctx, addr)
		if err != nil {
			return err
		}
		if l.streams == nil {
			l.streams = newStreamReader(l.stats)
			l.streams.decoding = &l.decoding
		}
		l.streams.listeners = append(l.streams.listeners, opened)
		l.addrs = append(l.addrs, opened.Addr())
		return nil
	}
	sockets, err := listenPackets(ctx, addr, readers)
	if err != nil {
		return err
	}
	l.addrs = append(l.addrs, sockets[0].addr)
	for _, socket := range sockets {
		reader := newPacketReader(socket, l.stats)
		reader.decoding = &l.decoding
		l.packets = append(l.packets, reader)
	}
	return nil
}

// readers are all of them.
func (l *listener) readers() []reader {
	var all []reader
	for _, r := range l.packets {
		all = append(all, r)
	}
	if l.streams != nil {
		all = append(all, l.streams)
	}
	return all
}

// run reads until ctx ends or a reader fails, and returns when all have ended.
func (l *listener) run(ctx context.Context, decoders []*decode.Decoder, feeds []feed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers := l.readers()
	// A hand-over takes a quarter of a reader's time. It pays where another processor would be idle
	// otherwise; one is left to the rest of the machine.
	spare := runtime.GOMAXPROCS(0) > len(readers)+1
	for _, r := range l.packets {
		r.handsOver = spare
	}
	errs := make([]error, len(readers))
	var running sync.WaitGroup
	for i, r := range readers {
		running.Go(func() {
			defer cancel()
			errs[i] = r.run(ctx, decoders[i], feeds[i])
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// close closes the sockets.
func (l *listener) close() error {
	var errs []error
	for _, r := range l.packets {
		errs = append(errs, r.socket.close())
	}
	if l.streams != nil {
		errs = append(errs, l.streams.close())
	}
	return errors.Join(errs...)
}
