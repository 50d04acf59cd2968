package kafkasource

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/rules"
)

// outageSpan is how much further back a partition is read than its windows need, beside a
// session: counts that were lost with a broker lie between two records of their sender, and
// whoever has the partition afterwards reports the gap.
const outageSpan = 10 * time.Second

// Source is a member of the consumer group. Make one with [New]. Its methods are
// safe for concurrent use; Run is called once.
type Source struct {
	cfg     Config
	inForce atomic.Pointer[inForce]
	stats   counters
	live    atomic.Pointer[[]string] // names of the instances that were live when a partition was last read; nil if unknown

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
	ask     chan struct{} // asks for the ends of partitions
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
	s := &Source{
		cfg:     c,
		workers: make(map[int32]*worker),
		ended:   make(map[int32]*worker),
		running: make(map[*worker]struct{}),
		sized:   make(chan struct{}),
		resizes: make(chan resize, 1),
		look:    make(chan struct{}, 1),
		ask:     make(chan struct{}, 1),

		abandoned:   make(chan struct{}, maxAbandoned),
		commitEvery: defaultCommit,
	}
	s.inForce.Store(newInForce(&c, c.Rules))
	return s, nil
}

// inForce are the rules in force.
type inForce struct {
	*rules.Rules
	lookback time.Duration // how far before now a partition is read from
}

func newInForce(c *Config, rules *rules.Rules) *inForce {
	return &inForce{rules, decode.Lookback(rules) + c.handOver()}
}

// handOver returns how long a partition may have no owner, with what may still arrive of the
// time before.
func (c *Config) handOver() time.Duration { return c.Grace + c.Session + outageSpan }

// lookback returns how far before now a partition is read from.
func (s *Source) lookback() time.Duration { return s.inForce.Load().lookback }

// groupClient is a member of the group.
type groupClient struct {
	*kgo.Client
	cancel context.CancelFunc // ends all that it does
}

// present returns the workers of the partitions that we have.
func (s *Source) present() []*worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*worker, 0, len(s.workers))
	for _, w := range s.workers {
		if !w.isLost.Load() {
			all = append(all, w)
		}
	}
	return all
}
