package collector

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// DefaultMaxKeys is how many keys a collector holds by default: as many as a
// flood of 50,000 new ones a second leaves in a window of a second, and half as
// many more.
const DefaultMaxKeys = 80_000

// shards is how many parts the keys are spread over, a power of two.
const shards = 16

// Config configures a [Collector]. Sink is required.
type Config struct {
	// Sink is where the counts go.
	Sink Sink
	// Rules are those that are counted: flushes are cut where the panes of their
	// windows end, and thresholds decide which counts are urgent. If nil, there is a
	// flush each 100 ms, and nothing is urgent.
	Rules *hotparam.Rules
	// MaxKeys bounds how many keys are held at a time; 0 is [DefaultMaxKeys],
	// about 28 MB.
	MaxKeys int
	// Budget is how many lines are sent in 100 ms: keys with few counts are held
	// back so that it is kept, whatever keys come. Keys that are hot, or may be,
	// are sent all the same. 0 means [DefaultBudget], a negative Budget no bound.
	Budget int
	// Urgent is how often the counts of keys that may be hot, and are not known to
	// be, are looked at and, unless the sink is a [PatientSink], sent. 0 means
	// [DefaultUrgent]; if it is negative, nothing is urgent.
	Urgent time.Duration
	// Log gets one line when counts cannot be sent and one when they can be again. If
	// nil, nothing is logged.
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
// of goroutines at any time, before, during and after Run.
type Collector struct {
	sink     Sink
	windows  []hotparam.Window
	lines    int           // the budget; negative: none
	urgent   time.Duration // the fast pace; not positive: none
	patient  bool          // the sink: nothing is sent at the fast pace
	accounts bool          // the sink's receiver reads them
	log      *slog.Logger

	shards     [shards]shard
	nearlyFull chan struct{} // a table is: make room
	hurry      chan struct{} // a key is urgent

	steering  atomic.Pointer[steering]
	onLocal   atomic.Pointer[func(hotparam.Hot, bool)]
	onOrigins atomic.Pointer[func(func(KeyOrigin) bool)]

	dropped struct{ full, tooLong, failed atomic.Int64 }
	sent    struct{ counts, lines, packets, flushes, urgent atomic.Int64 }
	figures struct{ aged, raised, unsent, held, candidates, factor, local atomic.Int64 }

	flusher
}

// flusher is what belongs to the flushing goroutine alone.
type flusher struct {
	profiles *profiles
	steered  *steering
	budget   budget
	local    localDetector

	start     int64 // of the counts to be taken, in ns since the Unix epoch
	now       int64
	runs      bool // Run keeps the time
	lastSend  int64
	urgentAt  int64 // of the last urgent flush
	originsAt int64 // when origins were last asked for
	spoke     bool  // the last packets had counts
	flushes   uint32

	factor     float32 // by which the candidates' mark is raised: 2^n
	held       int64   // h
	unsent     int64   // counts that were taken and not sent
	aged       int64
	candidates int64
	raised     int64

	opened       uint64 // accounts
	shedAccounts uint64 // those that could not be kept as long as promised
	reminded     int64  // when hot keys' accounts were last looked at
	calm         bool   // the last flush held nothing back
	coldSecond   int64  // in which coldOpened accounts of keys that are no candidates were opened
	coldOpened   int

	lost, toldLost, toldAged int64
	failing                  loglimit.Outage

	// Kept for their room:
	counts, parts []Count
	heldBack      []HeldBack
	origins       []KeyOrigin
	keep          []int32
	spare         books
	pool          pool
}

// New makes a collector. It starts nothing; [Collector.Run] does.
func New(c Config) (*Collector, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	if c.Budget == 0 {
		c.Budget = DefaultBudget
	}
	if c.Urgent == 0 {
		c.Urgent = DefaultUrgent
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	col := &Collector{
		sink: c.Sink, lines: c.Budget, urgent: c.Urgent, log: c.Log,
		nearlyFull: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
	}
	if p, ok := c.Sink.(PatientSink); ok {
		col.patient = p.Patient()
	}
	if s, ok := c.Sink.(AccountSink); ok {
		col.accounts = s.Accounts()
	}
	if c.Rules != nil {
		col.windows = c.Rules.Windows()
	}
	g, ok := c.Sink.(GroupSink)
	col.profiles = newProfiles(c.Rules, ok && g.Groups())
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

// Add counts n for a key: its canonical bytes ([hotparam.Key.String]) and their
// [hotparam.Hash]. It neither blocks nor allocates, keeps no reference to the
// bytes, and is safe for concurrent use. n must be below 2³².
func (c *Collector) Add(hash uint64, member []byte, n uint64) {
	if out := c.shardOf(hash).add(hash, member, n); out != added {
		c.handleOutcome(out, n)
	}
}

// shardOf is the shard of a key; its table uses the hash's low bits.
func (c *Collector) shardOf(hash uint64) *shard { return &c.shards[hash>>60&(shards-1)] }

// handleOutcome counts what an add dropped, and wakes Run where it asks for it.
func (c *Collector) handleOutcome(out outcome, n uint64) {
	if out&full != 0 {
		c.dropped.full.Add(int64(n))
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

// Fit returns the text by which a key with this text is counted and known to all others.
// Most texts are short and stay as they are. See [Sink].
func (c *Collector) Fit(text []byte) []byte {
	if len(text) <= AlwaysFits {
		return text
	}
	return c.sink.Fit(text)
}

// AlwaysFits is a length that no sink finds too long, so Fit does not ask it.
const AlwaysFits = 80
