package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// Config is what an [Aggregator] needs; Rules and Publisher are required.
type Config struct {
	Rules     *hotparam.Rules
	Publisher Publisher
	// Listen is the UDP address for StatsD; empty: 127.0.0.1:8125.
	Listen string
	// Encoding is how the senders write keys.
	Encoding wire.Encoding
	// Memory is how many bytes the windows of all shards may hold; 0 is
	// [DefaultMemory].
	Memory int64
	// Shards is how many goroutines share the keys; 0: one for each processor,
	// at most 8.
	Shards int
	// Lag is how long counts are on their way; 0 is [DefaultLag].
	Lag time.Duration
}

// MinMemory is the least memory that windows can work in.
const MinMemory = 1 << 20

func (c *Config) validate() error {
	switch {
	case c.Rules == nil:
		return errors.New("aggregator: Config.Rules is missing")
	case c.Publisher == nil:
		return errors.New("aggregator: Config.Publisher is missing")
	case c.Memory < MinMemory:
		return fmt.Errorf("aggregator: Config.Memory is %d bytes, must be at least %d", c.Memory, MinMemory)
	case c.Shards < 0 || c.Shards > 256:
		return fmt.Errorf("aggregator: Config.Shards is %d, must be 1 to 256", c.Shards)
	case c.Lag < 0:
		return fmt.Errorf("aggregator: Config.Lag is %v, must not be negative", c.Lag)
	}
	return c.Rules.Validate()
}

// Aggregator reads counts from all instances and publishes which keys are hot.
type Aggregator struct {
	source  *statsd
	decoder *Decoder
	shards  []*shard

	rules     *hotparam.Rules
	publisher Publisher
}

// New makes an aggregator and opens its socket, so that counts queue from now
// on; [Aggregator.Run] does the rest and closes it.
func New(ctx context.Context, c Config) (*Aggregator, error) {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:8125"
	}
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if c.Shards == 0 {
		c.Shards = min(8, runtime.GOMAXPROCS(0))
	}
	if c.Lag == 0 {
		c.Lag = DefaultLag
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	source, err := listenStatsD(ctx, c.Listen)
	if err != nil {
		return nil, err
	}
	a := &Aggregator{source: source, decoder: NewDecoder(c.Rules, c.Encoding), rules: c.Rules, publisher: c.Publisher}
	for part := range c.Shards {
		a.shards = append(a.shards, newShard(NewDetector(DetectorConfig{
			Rules:     c.Rules,
			Publisher: c.Publisher,
			Memory:    c.Memory,
			Lag:       c.Lag,
			Part:      part,
			Parts:     c.Shards,
		})))
	}
	return a, nil
}

// Addr is the address that the StatsD listener is bound to.
func (a *Aggregator) Addr() net.Addr { return a.source.conn.LocalAddr() }

// Run works until ctx ends; then it works off what has arrived, closes the
// socket and returns.
func (a *Aggregator) Run(ctx context.Context) error {
	var shards sync.WaitGroup
	for _, s := range a.shards {
		shards.Go(s.run)
	}
	err := a.source.run(ctx, a.decoder, newSpread(a.shards, a.rules), a.publisher.Instances)
	for _, s := range a.shards {
		close(s.queue)
	}
	shards.Wait()
	return errors.Join(err, a.source.close())
}

// Stats are the aggregator's counters and figures; those of the shards are at
// most a second old.
type Stats struct {
	Decoder  DecoderStats
	Detector DetectorStats
}

// Stats tells the counters and figures. It is safe for concurrent use.
func (a *Aggregator) Stats() Stats {
	s := Stats{Decoder: a.decoder.Stats()}
	for _, shard := range a.shards {
		d := shard.stats.Load()
		s.Detector.Merge(d)
	}
	return s
}
