package bench

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/statsdsource"
	"github.com/hotparam/hotparam/rules"
)

// Kinds of receiver.
const (
	kindAggregator = "aggregator"
	kindMinimal    = "minimal reader"
)

type receiverConfig struct {
	Kind    string
	Readers int
}

// receiver counts the lines that arrive at a socket.
type receiver interface {
	addr() net.Addr
	// run reads until ctx ends, and then reads the rest of the socket's buffer.
	run(ctx context.Context) error
	// lines returns the number of counted lines. It is safe for concurrent use.
	lines() int64
}

// runReceiver answers with its address, and then answers each request with a reading. When its
// input ends it counts everything received and answers with the last reading.
func runReceiver(ctx context.Context, l *link, c receiverConfig) error {
	var r receiver
	var err error
	switch c.Kind {
	case kindAggregator:
		r, err = newWhole(ctx, c.Readers)
	case kindMinimal:
		r, err = newMinimal(ctx, c.Readers)
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
	return l.send(receiverProgress{Lines: r.lines(), CPU: cpu, At: monotonic()})
}

// whole is the aggregator as the daemon runs it. Its publisher discards everything: no key
// reaches the threshold.
type whole struct{ *statsdsource.Source }

func newWhole(ctx context.Context, readers int) (whole, error) {
	a, err := statsdsource.New(ctx, statsdsource.Config{
		Trust: &decode.Trust{Caps: decode.DefaultCaps}, // as in the daemon
		Rules: lineRules(rules.NewThreshold(unreachable)), Publisher: discardPublisher{}, Listen: []string{"127.0.0.1:0"}, Readers: readers,
	})
	return whole{a}, err
}

func (w whole) addr() net.Addr                { return w.Addr() }
func (w whole) run(ctx context.Context) error { return w.Run(ctx) }

// lines returns the number of decoded lines minus the counts that came too late for a window.
func (w whole) lines() int64 {
	s := w.Stats()
	return s.Decoder.Counts - s.Detector.Late
}
