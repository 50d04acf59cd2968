package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/wire"
)

// PartitionPublisher is where the hot keys of one partition go. A source makes one each
// time that it gets the partition, and runs it while it has it.
type PartitionPublisher interface {
	aggregator.Publisher
	// Adopt takes the partition's part of the hot set over, so that nobody who had
	// it before writes it any more, and returns the keys that are in it. Nothing
	// is changed in it. It is called until it succeeds, before all else.
	Adopt(ctx context.Context) ([]hotparam.Hot, error)
	// Run publishes until ctx ends, makes a last change and returns.
	Run(ctx context.Context) error
}

// Config is what a [Source] needs; Connection.Brokers, Rules and Publisher are
// required.
type Config struct {
	Connection kafka.Connection
	// Topic is where the counts are; empty: [wire.DefaultTopic].
	Topic string
	// Group is the consumer group whose members share the partitions; empty:
	// "hotparam-" and the rules' namespace.
	Group string
	// Member names this source in its group for longer than it lives (static
	// membership): who comes back within Session gets the same partitions, and
	// nobody else gets them in between. No two may have the same. Empty: a member
	// lives as long as it runs, and its partitions go over when it ends.
	Member string
	// Session is how long the group waits for a member that is not heard of before
	// others get its partitions; 0 is [DefaultSession].
	Session time.Duration
	Rules   *hotparam.Rules
	// Encoding is how the senders write keys.
	Encoding wire.Encoding
	// Canonical is [decode.Decoder.Canonical].
	Canonical bool
	// Memory is how many bytes the windows of all partitions of the topic may
	// hold; 0 is [aggregator.DefaultMemory]. Each gets the same part of it,
	// so it is not exceeded however many partitions are here.
	Memory int64
	// Grace is how much later than a window counts may come and still be placed,
	// and how far a slow sender can hold a partition's time up; 0 is
	// [DefaultGrace].
	Grace time.Duration
	// Lag is how long counts of programs that send lines alone may be on their
	// way; 0 is [decode.DefaultLag].
	Lag time.Duration
	// Trust is whose records are believed; nil: all. Its caps hold for each partition.
	// [decode.TrustListed] is of addresses, which records have none of.
	Trust *decode.Trust
	// Publisher makes the publisher of a partition.
	Publisher func(partition int32) (PartitionPublisher, error)
	// Log gets one line per event and outage; nil: nothing is logged.
	Log *slog.Logger
}

// Defaults of a [Config].
const (
	DefaultSession = 10 * time.Second
	DefaultGrace   = 5 * time.Second
)

// outageSpan is how much further back a partition is read than its windows need,
// beside a session: what a broker's death lost lies between two records of its
// sender then, and is told as a gap by whoever has the partition afterwards.
const outageSpan = 10 * time.Second

// MinSession is the shortest session. Brokers may ask for more
// (group.min.session.timeout.ms, 6 s by default).
const MinSession = time.Second

func (c Config) withDefaults() Config {
	if c.Topic == "" {
		c.Topic = wire.DefaultTopic
	}
	if c.Group == "" && c.Rules != nil {
		c.Group = "hotparam-" + c.Rules.Namespace
	}
	for _, d := range []struct {
		value *time.Duration
		or    time.Duration
	}{{&c.Session, DefaultSession}, {&c.Grace, DefaultGrace}, {&c.Lag, decode.DefaultLag}, {&c.Connection.Timeout, 5 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	if c.Connection.ClientID == "" {
		c.Connection.ClientID = "hotparam"
	}
	if c.Memory == 0 {
		c.Memory = aggregator.DefaultMemory
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *Config) validate() error {
	switch {
	case c.Rules == nil:
		return errors.New("kafka source: Config.Rules is missing")
	case c.Publisher == nil:
		return errors.New("kafka source: Config.Publisher is missing")
	case c.Session < MinSession:
		return fmt.Errorf("kafka source: Config.Session is %v, must be at least %v", c.Session, MinSession)
	case c.Grace < time.Second:
		return fmt.Errorf("kafka source: Config.Grace is %v, must be at least 1s: idle senders are heard each second", c.Grace)
	case c.Lag < 0:
		return fmt.Errorf("kafka source: Config.Lag is %v, must not be negative", c.Lag)
	case c.Memory < aggregator.MinMemory:
		return fmt.Errorf("kafka source: Config.Memory is %d bytes, must be at least %d", c.Memory, aggregator.MinMemory)
	}
	if err := c.Connection.Validate(); err != nil {
		return fmt.Errorf("kafka source: %w", err)
	}
	if t := c.Trust; t != nil {
		if err := t.Validate(); err != nil {
			return fmt.Errorf("kafka source: Config.%w", err)
		}
		if t.Mode == decode.TrustListed {
			return errors.New("kafka source: Config.Trust is TrustListed: records have no addresses, want TrustAll or TrustSigned")
		}
	}
	if err := c.Rules.Validate(); err != nil {
		return fmt.Errorf("kafka source: %w", err)
	}
	return nil
}

// Source is a member of the consumer group. Make one with [New]. Its methods are
// safe for concurrent use; Run is called once.
type Source struct {
	cfg      Config
	lookback time.Duration // how far before now a partition is read from
	stats    counters

	mu      sync.Mutex           // guards the next seven
	workers map[int32]*worker    // of the partitions that we have
	ended   map[int32]*worker    // the last one of a partition that we had
	running map[*worker]struct{} // those of both that have not ended yet
	size    int                  // partitions of the topic; 0: not known yet
	id      [16]byte             // of the topic
	past    pastStats
	isOver  bool          // no more workers are started
	sized   chan struct{} // closed when size is known

	resizes chan resize
	look    chan struct{} // asks for the topic's size
	working sync.WaitGroup
	fail    context.CancelCauseFunc

	lines struct{ assigned, revoked, lost, resized, truncated, adoption loglimit.Limit }

	leaderless  atomic.Bool   // some leader did not answer when they were last asked
	abandoned   chan struct{} // has one for each client that was replaced and has not ended
	commitEvery time.Duration
	extra       []kgo.Opt // of tests
}

// New checks the configuration. It starts nothing.
func New(c Config) (*Source, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Source{
		cfg:      c,
		lookback: decode.Lookback(c.Rules) + c.Grace + c.Session + outageSpan,
		workers:  make(map[int32]*worker),
		ended:    make(map[int32]*worker),
		running:  make(map[*worker]struct{}),
		sized:    make(chan struct{}),
		resizes:  make(chan resize, 1),
		look:     make(chan struct{}, 1),

		abandoned:   make(chan struct{}, maxAbandoned),
		commitEvery: defaultCommit,
	}, nil
}

// Run takes its share of the partitions and works until ctx ends: then it works
// off what it has fetched and leaves the group, unless it is a static member.
// Brokers that are away are waited for, and a client that is stuck is replaced. It
// ends early with an error if the brokers refuse it.
func (s *Source) Run(ctx context.Context) error {
	outer := ctx
	ctx, s.fail = context.WithCancelCause(ctx)
	defer s.fail(nil)
	var telling sync.WaitGroup
	telling.Go(func() { s.tellInstances(ctx) })
	last, err := s.runClients(ctx)
	if err == nil && outer.Err() == nil {
		err = context.Cause(ctx) // a worker failed
	}
	s.fail(err)
	telling.Wait()
	s.mu.Lock()
	s.isOver = true
	s.mu.Unlock()
	for _, w := range s.removeAll() {
		w.end(true)
	}
	s.working.Wait()
	if last != nil {
		s.leave(ctx, last)
	}
	s.awaitAbandoned()
	return err
}

// groupClient is a member of the group.
type groupClient struct {
	*kgo.Client
	cancel context.CancelFunc // ends all that it does
}

// leave ends the membership: the others get the partitions at once. It takes as long
// as a request may, at most.
func (s *Source) leave(ctx context.Context, client *groupClient) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Connection.Timeout)
	defer cancel()
	// The client waits for requests of its own, however long a broker has it wait.
	defer context.AfterFunc(ctx, client.cancel)()
	client.AllowRebalance()
	_ = client.LeaveGroupContext(ctx) // else the session's end does it
	client.CloseAllowingRebalance()
	// Close ends with a poll of what is buffered, which blocks rebalances as any poll.
	// The goroutine of its own LeaveGroup may start only after that poll, and would
	// wait forever: it and the client would leak.
	client.AllowRebalance()
	client.cancel()
}
