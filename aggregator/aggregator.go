package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/wire"
)

// Config is what an [Aggregator] needs; Rules and Publisher are required.
type Config struct {
	Rules     *hotparam.Rules
	Publisher Publisher
	// Listen are the addresses for StatsD, as [wire.ParseAddress] reads them; none:
	// [DefaultListen].
	Listen []string
	// Readers is how many sockets and goroutines read each UDP address, at most
	// [MaxReaders]; 0 is 1. More than one share the senders among them by the
	// kernel's SO_REUSEPORT, which needs Linux.
	Readers int
	// Encoding is how the senders write keys.
	Encoding wire.Encoding
	// Canonical is [decode.Decoder.Canonical].
	Canonical bool
	// Memory is how many bytes the windows of all shards and the accounts of keys may
	// hold; 0 is [DefaultMemory].
	Memory int64
	// Shards is how many goroutines share the keys; 0: one for each processor,
	// at most 8.
	Shards int
	// Lag is how long counts are on their way; 0 is [decode.DefaultLag].
	Lag time.Duration
	// Trust is whose packets are believed; nil: all.
	Trust *decode.Trust
	// Log gets a line for each instance whose clock is off; nil: nothing is logged.
	Log *slog.Logger
}

func (c *Config) validate() error {
	switch {
	case c.Rules == nil:
		return errors.New("aggregator: Config.Rules is missing")
	case c.Publisher == nil:
		return errors.New("aggregator: Config.Publisher is missing")
	case c.Memory < MinMemory:
		return fmt.Errorf("aggregator: Config.Memory is %d bytes, must be at least %d", c.Memory, MinMemory)
	case c.Readers < 0 || c.Readers > MaxReaders:
		return fmt.Errorf("aggregator: Config.Readers is %d, must be 1 to %d", c.Readers, MaxReaders)
	case c.Readers > 1 && !canSharePort:
		return fmt.Errorf("aggregator: Config.Readers is %d: this system cannot spread senders over several sockets, must be 1", c.Readers)
	case c.Shards < 0 || c.Shards > 256:
		return fmt.Errorf("aggregator: Config.Shards is %d, must be 1 to 256", c.Shards)
	case c.Lag < 0:
		return fmt.Errorf("aggregator: Config.Lag is %v, must not be negative", c.Lag)
	}
	if c.Trust != nil {
		if err := c.Trust.Validate(); err != nil {
			return fmt.Errorf("aggregator: Config.%w", err)
		}
	}
	return c.Rules.Validate()
}

// Aggregator reads counts from all instances and publishes which keys are hot.
type Aggregator struct {
	listener *listener
	decoders []*decode.Decoder // by reader
	shards   *Shards

	publisher Publisher
	clocks    *decode.ClockLog
}

// New makes an aggregator and opens its sockets, so that counts queue from now
// on; [Aggregator.Run] does the rest and closes them.
func New(ctx context.Context, c Config) (*Aggregator, error) {
	if len(c.Listen) == 0 {
		c.Listen = []string{DefaultListen}
	}
	if c.Readers == 0 {
		c.Readers = 1
	}
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if c.Shards == 0 {
		c.Shards = min(8, runtime.GOMAXPROCS(0))
	}
	if c.Lag == 0 {
		c.Lag = decode.DefaultLag
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	listener, err := listenStatsD(ctx, c.Listen, c.Readers)
	if err != nil {
		return nil, err
	}
	a := &Aggregator{listener: listener, publisher: c.Publisher, clocks: decode.NewClockLog(c.Log)}
	readers := len(listener.readers())
	windows, accounts := SplitMemory(c.Memory)
	for i := range readers {
		a.decoders = append(a.decoders, decode.NewDecoder(c.Rules, c.Encoding))
		if i == 0 {
			a.decoders[0].Believe(c.Trust)
			a.decoders[0].LimitAccounts(accounts)
		} else {
			a.decoders[i].ShareSenders(a.decoders[0])
		}
		a.decoders[i].Canonical = c.Canonical
	}
	a.shards = NewShards(DetectorConfig{Rules: c.Rules, Publisher: c.Publisher, Memory: windows, Lag: c.Lag}, c.Shards, readers)
	return a, nil
}

// Addr is the first address that the StatsD listener is bound to.
func (a *Aggregator) Addr() net.Addr { return a.listener.addrs[0] }

// Addrs are all of them, in the order of Config.Listen.
func (a *Aggregator) Addrs() []net.Addr { return slices.Clone(a.listener.addrs) }

// Run works until ctx ends; then it works off what has arrived, closes the
// sockets and returns.
func (a *Aggregator) Run(ctx context.Context) error {
	var shards, telling sync.WaitGroup
	shards.Go(a.shards.Run)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	telling.Go(func() { a.tellInstances(reading) })
	err := a.listener.run(ctx, a.decoders, a.shards)
	stop()
	telling.Wait()
	a.shards.Close()
	shards.Wait()
	return errors.Join(err, a.listener.close())
}

// tellInstances tells which instances are live, and names those whose clocks are off,
// until ctx ends.
func (a *Aggregator) tellInstances(ctx context.Context) {
	ticker := time.NewTicker(instancesEvery)
	defer ticker.Stop()
	for {
		now := time.Now()
		live := a.decoders[0].Instances(now)
		a.publisher.Instances(live)
		a.clocks.Tell(now, live, a.decoders[0].Clocks(now))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Stats are the aggregator's counters and figures; those of the shards are at
// most a second old.
type Stats struct {
	Listener ListenerStats
	Decoder  decode.Stats
	Detector DetectorStats
}

// Stats tells the counters and figures. It is safe for concurrent use.
func (a *Aggregator) Stats() Stats {
	s := Stats{Listener: a.listener.stats.load(), Detector: a.shards.Stats()}
	for _, d := range a.decoders {
		of := d.Stats()
		s.Decoder.Merge(&of)
	}
	return s
}
