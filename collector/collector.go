package collector

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/rules"
)

// DefaultMaxKeys is the default of Config.MaxKeys: half as many again as a flood of 50,000
// new keys a second brings in a window of a second.
const DefaultMaxKeys = 80_000

// shards is the number of parts that the keys are spread over, a power of two.
const shards = 16

// Config configures a [Collector]. Sink is required.
type Config struct {
	// Sink receives the counts.
	Sink Sink
	// Rules are those whose keys are counted. Their windows determine when flushes are
	// made, and their thresholds which counts are urgent. If nil, there is a flush each
	// 100 ms, and no count is urgent. [Collector.Reload] replaces them.
	Rules *rules.Rules
	// MaxKeys bounds the number of keys in memory. Zero means [DefaultMaxKeys], which
	// takes about 28 MB.
	MaxKeys int
	// Budget bounds the lines that are sent in 100 ms: keys with few counts are held
	// back. Keys that are hot, or may be, are sent all the same. Zero means
	// 2,000; if Budget is negative, there is no bound.
	Budget int
	// Urgent is how often the counts of keys that may be hot, and are not known to be,
	// are checked and, unless the sink is a [PatientSink], sent. Zero means
	// [DefaultUrgent]; if Urgent is negative, no count is urgent.
	Urgent time.Duration
	// Log receives a line when counts cannot be sent and when they can be again. If nil,
	// nothing is logged.
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

// Collector counts keys and sends the counts. Add may be called by any number
// of goroutines at any time: before, during and after Run.
type Collector struct {
	sink     Sink
	lines    int           // the budget, or negative
	urgent   time.Duration // the fast pace, or negative
	patient  bool          // the sink is: nothing is sent at the fast pace
	accounts bool          // the sink's receiver reads them
	log      *slog.Logger

	shards     [shards]shard
	nearlyFull chan struct{} // a table is about to be full
	hurry      chan struct{} // a key is urgent
	reloaded   chan struct{} // next has rules

	next      atomic.Pointer[rulesInForce] // of the last Reload; nil once in force
	steering  atomic.Pointer[steering]
	onLocal   atomic.Pointer[func(rules.Hot, bool)]
	onOrigins atomic.Pointer[func(func(KeyOrigin) bool)]

	full    atomic.Int64 // counts that found no room in a table, which requests count
	stats   base.Guarded[Stats]
	counted atomic.Pointer[[]*ruleCount]

	flusher
}

// flusher is the state of the flushing goroutine, which only that uses.
type flusher struct {
	profiles *profiles
	windows  []rules.Window
	sums     map[string]*ruleCount // by rule, also of those that are gone
	steered  *steering
	budget   budget
	local    localDetector

	// Times are in nanoseconds since the Unix epoch.
	start      int64 // the first instant that the counts to be taken can be of
	now        int64
	runs       bool // by Run, and not by a caller of Flush
	lastSend   int64
	urgentAt   int64 // time of the last urgent flush
	originsAt  int64 // when origins were last asked for
	sentCounts bool  // the last packets had counts
	flushes    uint32

	factor     float32 // by which the candidates' mark is raised: a power of two
	held       int64   // h
	unsent     int64   // sum of the counts that were taken and not sent
	aged       int64   // sum of the counts that were never sent
	candidates int64
	raised     int64 // times that factor was raised

	opened       uint64 // accounts opened
	shedAccounts uint64 // accounts that could not be kept as long as promised
	reminded     int64  // when hot keys' accounts were last checked
	calm         bool   // the last flush held nothing back
	coldSecond   int64  // the second that coldOpened is of
	coldOpened   int    // accounts opened for keys that are no candidates

	lost, statedLost, statedAged int64
	failing                      loglimit.Outage

	// Buffers that are used again:
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
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	if c.Budget == 0 {
		c.Budget = defaultBudget
	}
	if c.Urgent == 0 {
		c.Urgent = DefaultUrgent
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	col := &Collector{
		sink: c.Sink, lines: c.Budget, urgent: c.Urgent, log: c.Log,
		nearlyFull: make(chan struct{}, 1), hurry: make(chan struct{}, 1), reloaded: make(chan struct{}, 1),
	}
	if p, ok := c.Sink.(PatientSink); ok {
		col.patient = p.Patient()
	}
	if s, ok := c.Sink.(AccountSink); ok {
		col.accounts = s.Accounts()
	}
	rules := newRulesInForce(c.Rules, c.Sink)
	col.profiles, col.windows, col.sums = rules.profiles, rules.windows, make(map[string]*ruleCount)
	col.setCounted(newRuleCounts(rules.rules, rules.profiles))
	col.steered = &steering{instances: 1}
	col.steering.Store(col.steered)
	col.factor, col.held = 1, 1
	for i := range col.shards {
		col.shards[i].init(max(16, c.MaxKeys/shards), col.profiles.levels, col.firstMark(), col.accounts)
	}
	col.spare = newBooks(len(col.shards[0].notes), col.profiles.levels, col.accounts)
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
func (c *Collector) handleOutcome(out outcome, n uint64) {
	if out&full != 0 {
		c.full.Add(int64(n))
	}
	if out&(full|filling) != 0 {
		wake(c.nearlyFull)
	}
	if out&urgent != 0 {
		wake(c.hurry)
	}
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Fit returns the text by which a key is counted: the given text, or if that is too long
// for the sink, a shortened one. It may change the text in place. See [Sink].
func (c *Collector) Fit(text []byte) []byte {
	if len(text) <= AlwaysFits {
		return text
	}
	return c.sink.Fit(text)
}

// AlwaysFits is a length, in bytes, that fits every sink.
const AlwaysFits = 80
