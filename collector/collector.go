package collector

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// DefaultMaxKeys is the default of Config.MaxKeys. It has room for a flood of 50,000 new keys
// per second in a window of a second, and for more than half as many in addition.
const DefaultMaxKeys = 80_000

// shards is the number of parts that the keys are spread over, a power of two.
const shards = 16

// Config configures a [Collector]. Sink is required.
type Config struct {
	// Sink receives the counts.
	Sink Sink
	// Rules are the rules whose keys are counted. Their windows determine the times of the
	// flushes, and their thresholds the urgent counts. With nil Rules, the collector flushes
	// every 100 ms and no count is urgent. [Collector.Reload] replaces them.
	Rules *rules.Rules
	// MaxKeys bounds the number of keys in memory. Zero means [DefaultMaxKeys], which
	// takes about 28 MB.
	MaxKeys int
	// Budget bounds the lines that are sent in 100 ms: keys with few counts are held back.
	// Keys that are hot or may be hot are always sent. Zero means 2,000. A negative Budget
	// means no bound.
	Budget int
	// Urgent is the interval at which the counts of keys that may be hot, and are not known to
	// be, are checked. They are also sent, unless the sink is patient ([Capabilities]). Zero means
	// [DefaultUrgent]. With a negative Urgent, no count is urgent.
	Urgent time.Duration
	// Log receives a line when counts cannot be sent and when they can be sent again. A nil
	// Log disables logging.
	Log *slog.Logger
}

func (c Config) validate() error {
	switch {
	case c.Sink == nil:
		return errors.New("collector: Config.Sink is missing")
	case c.MaxKeys < 0:
		return fmt.Errorf("collector: Config.MaxKeys is %d, must not be negative", c.MaxKeys)
	}
	return nil
}

// Collector counts keys and sends the counts. Any number of goroutines may call Add at any
// time: before, during and after Run.
type Collector struct {
	sink   Sink
	can    Capabilities  // the sink's
	lines  int           // the budget, or negative
	urgent time.Duration // the fast pace, or negative
	log    *slog.Logger

	shards     [shards]shard
	nearlyFull chan struct{} // signals that a table is about to be full
	hurry      chan struct{} // signals that a key is urgent
	reloaded   chan struct{} // signals that next has rules

	next      atomic.Pointer[rulesInForce] // rules of the last Reload; nil once in force
	steering  atomic.Pointer[steering]
	onLocal   atomic.Pointer[func(published.Hot, bool)]
	onOrigins atomic.Pointer[func(func(KeyOrigin) bool)]
	onUsage   atomic.Pointer[func(func(KeyOrigin) bool)]

	full    atomic.Int64 // counts dropped because a table was full; incremented by Add
	stats   base.Guarded[Stats]
	counted atomic.Pointer[[]*ruleCount]

	flusher
}

// flusher is the state of the flushing goroutine, which no other goroutine uses.
type flusher struct {
	profiles *profiles
	windows  []rules.Window
	sums     map[string]*ruleCount // by rule, including removed rules
	steered  *steering
	budget   budget
	local    localDetector

	// Times are in nanoseconds since the Unix epoch.
	start      int64 // the earliest possible time of the counts to be taken
	now        int64
	runs       bool // whether Run flushes, and not a caller of Flush
	lastSend   int64
	urgentAt   int64 // time of the last urgent flush
	originsAt  int64 // time of the last request for origins
	sentCounts bool  // whether the last packets had counts
	flushes    uint32

	factor     float32 // factor that raises the candidates' mark: a power of two
	held       int64   // h; see budget
	unsent     int64   // sum of the counts that were taken and not sent
	aged       int64   // sum of the counts that will never be sent
	candidates int64
	raised     int64 // number of times that factor was raised

	opened       uint64 // number of accounts opened
	shedAccounts uint64 // number of accounts that could not be kept as long as promised
	reminded     int64  // time when hot keys' accounts were last checked
	calm         bool   // whether the last flush held nothing back
	coldSecond   int64  // the second that coldOpened belongs to
	coldOpened   int    // accounts opened for keys that are not candidates

	lost, statedLost, statedAged int64
	failing                      loglimit.Outage

	// Reused buffers:
	counts, parts []Count
	heldBack      []HeldBack
	origins       []KeyOrigin
	keep          []int32
	spare         books
	pool          pool
}

// New returns a collector. It starts nothing; see [Collector.Run].
func New(c Config) (*Collector, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c.MaxKeys = cmp.Or(c.MaxKeys, DefaultMaxKeys)
	c.Budget = cmp.Or(c.Budget, defaultBudget)
	c.Urgent = cmp.Or(c.Urgent, DefaultUrgent)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	col := &Collector{
		sink: c.Sink, can: c.Sink.Capabilities(), lines: c.Budget, urgent: c.Urgent, log: c.Log,
		nearlyFull: make(chan struct{}, 1), hurry: make(chan struct{}, 1), reloaded: make(chan struct{}, 1),
	}
	rules := newRulesInForce(c.Rules, col.can)
	col.profiles, col.windows, col.sums = rules.profiles, rules.windows, make(map[string]*ruleCount)
	col.setCounted(newRuleCounts(rules.rules, rules.profiles))
	col.steered = &steering{instances: 1}
	col.steering.Store(col.steered)
	col.factor, col.held = 1, 1
	for i := range col.shards {
		col.shards[i].init(max(16, c.MaxKeys/shards), col.profiles.levels, col.firstUrgentCount(), col.can.Accounts)
	}
	col.spare = newBooks(len(col.shards[0].notes), col.profiles.levels, col.can.Accounts)
	col.publishFigures()
	return col, nil
}

// Add adds n to the count of a key. member is the key's canonical text
// ([rules.Key.String]), and hash its [rules.Hash]. n must be below 2³². Add neither
// blocks nor allocates, does not keep member, and is safe for concurrent use.
func (c *Collector) Add(hash uint64, member []byte, n uint64) {
	if out := c.shardOf(hash).add(hash, member, n); out != added {
		c.handleOutcome(out, n)
	}
}

// shardOf returns the shard of a key. The shard's table uses the low bits of the hash.
func (c *Collector) shardOf(hash uint64) *shard { return &c.shards[hash>>60&(shards-1)] }

// handleOutcome records counts that an add dropped, and wakes Run if the add asks for it.
func (c *Collector) handleOutcome(out addOutcome, n uint64) {
	if out&full != 0 {
		c.full.Add(int64(n))
	}
	if out&(full|filling) != 0 {
		base.Notify(c.nearlyFull)
	}
	if out&urgent != 0 {
		base.Notify(c.hurry)
	}
}

// Fit returns the text that a key is counted by: the given text or, if it is too long for the
// sink, a shortened one. It may change the text in place. See [Sink].
func (c *Collector) Fit(text []byte) []byte {
	if len(text) <= AlwaysFits {
		return text
	}
	return c.sink.Fit(text)
}

// AlwaysFits is a length, in bytes, that fits every sink.
const AlwaysFits = 80
