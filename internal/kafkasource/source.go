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

// outageSpan is how much further back a partition is read than its windows need, in addition to
// a session. Counts that were lost with a broker lie between two records of their sender. The
// next owner of the partition reads both, and reports the gap as well.
const outageSpan = 10 * time.Second

// Source is a member of the consumer group. Create it with [New]. Its methods are safe for
// concurrent use; Run must be called only once.
type Source struct {
	cfg     Config
	inForce atomic.Pointer[inForce]
	stats   Counters[atomic.Int64]
	live    atomic.Pointer[[]string] // names of the instances that were live when a partition was last read; nil if unknown

	mu      sync.Mutex           // guards the next seven fields
	workers map[int32]*worker    // workers of the partitions that we have
	ended   map[int32]*worker    // last worker of each partition that we had
	running map[*worker]struct{} // workers in both maps that have not ended
	size    int                  // partitions of the topic; 0 if not known yet
	id      [16]byte             // ID of the topic
	past    pastStats
	isOver  bool          // no more workers are started
	sized   chan struct{} // closed when size is known

	look    chan struct{} // requests the topic's size
	ask     chan struct{} // requests the ends of partitions
	working sync.WaitGroup
	fail    context.CancelCauseFunc

	lines struct{ assigned, revoked, lost, resized, truncated, adoption loglimit.Limit }

	leaderless  atomic.Bool   // some leader did not answer when they were last asked
	abandoned   chan struct{} // holds a value for each replaced client that has not ended
	commitEvery time.Duration
	extra       []kgo.Opt // options of tests
}

// New returns a source. It starts nothing.
func New(c Config) *Source {
	c = c.withDefaults()
	s := &Source{
		cfg:     c,
		workers: make(map[int32]*worker),
		ended:   make(map[int32]*worker),
		running: make(map[*worker]struct{}),
		sized:   make(chan struct{}),
		look:    make(chan struct{}, 1),
		ask:     make(chan struct{}, 1),

		abandoned:   make(chan struct{}, maxAbandoned),
		commitEvery: defaultCommit,
	}
	s.inForce.Store(newInForce(&c, c.Rules))
	return s
}

// inForce are the rules in force.
type inForce struct {
	*rules.Rules
	lookback time.Duration // time before now from which partitions are read
}

func newInForce(c *Config, rules *rules.Rules) *inForce {
	return &inForce{rules, decode.Lookback(rules) + c.handOver()}
}

// handOver returns how long a partition may have no owner, including the time in which older
// counts may still arrive.
func (c *Config) handOver() time.Duration { return grace + c.Session + outageSpan }

// lookback returns how far before now partitions are read from.
func (s *Source) lookback() time.Duration { return s.inForce.Load().lookback }

// groupClient is a member of the group.
type groupClient struct {
	*kgo.Client
	cancel context.CancelFunc // ends all its requests and goroutines
}

// ownedWorkers returns the workers of the partitions that we have.
func (s *Source) ownedWorkers() []*worker {
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
