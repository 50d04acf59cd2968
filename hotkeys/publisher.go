package hotkeys

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// Publisher writes the set of hot keys to Redis, as far as this aggregator
// owns it. [Publisher.Publish], [Publisher.Refresh], [Publisher.Suspects] and
// [Publisher.Instances] only note what ought to be published; [Publisher.Run]
// does all the talking. While Redis is away changes add up, and are published as
// one when it is back. Safe for concurrent use.
//
// Owning is fenced: a claim raises the owner's epoch, and each script checks it, as
// one that was only paused must not undo what its successor did. Without a lease
// whoever claims last has the owner: a publisher that another process has replaced
// is fenced ([PublisherStats.FencedBy]) and stands by until that one ends or falls
// silent, by Redis's clock. While both live nothing changes hands. With a lease
// whoever claims first has the owner, and others stand by ([PublisherStats.Standby]).
//
// One that stands by keeps noting what ought to be published, tells nothing, and
// takes over. What it then finds published stays as it is where
// both agree; what was hot here and has cooled is taken out; what was never hot
// here is left to fade, as a process that has just started cannot know better.
// The epoch is the fencing token: it rises with each holder, and a script of an
// earlier one changes nothing, however late it comes.
type Publisher struct {
	cfg    PublisherConfig
	client redis.UniversalClient
	layout Layout
	holder string // this process's name as a holder of owners
	jobs   []job

	mu        sync.Mutex // guards the next two
	desired   desired
	suspected suspected

	wake    chan struct{} // the desired set changed
	suspect chan struct{} // there are new suspects

	writer // of Run's goroutine alone

	stats publisherStats
}

// PublisherStats are a publisher's counters since its start, and its state.
type PublisherStats struct {
	Version  string // of the set, as last seen
	Keys     int    // published by this publisher
	Waiting  int    // hot, and not published as the set is full
	Overflow uint64 // times that a hot key found no place, or lost its own
	// Rules are the same by rule: those of the configuration, and all that a key
	// was of.
	Rules   map[string]RulePlaces
	Refused uint64 // times that a key was told which no watcher could read; see the log
	// Unpublishable are the keys that are hot now and that no watcher could read.
	Unpublishable int
	Changes       uint64 // changes written
	Renewals      uint64
	Pruned        uint64 // entries removed because they were over
	Rewrites      uint64 // whole sets written, after Redis had lost state
	Failures      uint64 // calls that failed
	// Unreadable are entries that were found in Redis at [Publisher.Adopt], or at
	// a take-over, and could not be read.
	Unreadable uint64
	Connected  bool // nothing fails that must be written
	// FencedBy names the holder and the epoch of the process that took our part of
	// the set, without a lease; empty: none did.
	FencedBy string
	// Trouble is why something is not written now; empty: nothing fails. While
	// Connected that is but a part, without which hot keys are published all the same.
	Trouble string
	Healed  Healed
	// Standby: another process holds our part of the set. Takeovers is how often
	// this one came to hold it after it stood by; with a lease each does at first.
	Standby   bool
	Takeovers uint64

	Suspects         int    // published by this publisher
	SuspectsOverflow uint64 // suspects that found their set full
	Instances        int    // that send counts to this process
}

type publisherStats struct {
	version, fencedBy, trouble            atomic.Pointer[string]
	keys, suspects, instances             atomic.Int64
	refused, changes, renewals, pruned    atomic.Uint64
	rewrites, failures, unreadable, taken atomic.Uint64
	connected, standby                    atomic.Bool
	healed                                healedCounters
}

// NewPublisher checks the configuration. It starts nothing; the client stays
// the caller's. Make the client with [NewClient], or set ContextTimeoutEnabled
// and MaxRetries -1, so that calls keep to their deadlines.
func NewPublisher(client redis.UniversalClient, cfg PublisherConfig) (*Publisher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	if client == nil {
		return nil, errors.New("publisher: no Redis client")
	}
	p := &Publisher{
		cfg:       cfg,
		client:    client,
		layout:    NewLayout(cfg.Namespace),
		holder:    newHolder(),
		desired:   newDesired(cfg.Cap, cfg.Rules),
		suspected: newSuspected(cfg.Rules),
		wake:      make(chan struct{}, 1),
		suspect:   make(chan struct{}, 1),
		writer:    writer{reclaim: true, sent: make(map[string]entryTerms), known: make(map[*redis.Script]bool)},
	}
	p.standby, p.silence = cfg.Lease > 0, cfg.Lease
	p.jobs = []job{
		{name: "Renew", spec: cfg.Renew, due: make(chan struct{}, 1)},
		{name: "Prune", spec: cfg.Prune, due: make(chan struct{}, 1)},
		{name: "Trim", spec: cfg.Trim, due: make(chan struct{}, 1)},
	}
	for i := range p.jobs {
		if err := p.jobs[i].parse(); err != nil {
			return nil, fmt.Errorf("publisher: %w", err)
		}
	}
	if cfg.Lease == 0 {
		p.silence = silenceAfter(p.jobs[renewJob].schedule, cfg.BeatTTL)
	}
	if s, ok := p.jobs[renewJob].schedule.(cron.ConstantDelaySchedule); ok && 2*s.Delay > cfg.BeatTTL {
		return nil, fmt.Errorf("publisher: Renew %q: must come at least twice in BeatTTL %v, or limits flicker", cfg.Renew, cfg.BeatTTL)
	}
	return p, nil
}

// Publish notes a change of the hot set. It does not block. Entries are
// published under this publisher's owner, whatever theirs is; Until is Redis's
// to tell.
func (p *Publisher) Publish(change hotparam.Change) {
	changed := false
	p.mu.Lock()
	for _, h := range change.Hot {
		h = p.entry(h)
		if err := publishable(h); err != nil {
			p.refuse(h, err)
		} else if p.desired.set(h) {
			changed = true
		}
	}
	for _, h := range change.Cool {
		if p.desired.remove(h.Key) {
			changed = true
		}
	}
	p.mu.Unlock()
	if changed {
		p.wakeUp()
	}
}

// entry is a hot key as this publisher publishes it.
func (p *Publisher) entry(h hotparam.Hot) hotparam.Hot {
	h.Owner = p.cfg.Owner
	if h.Mode == "" && h.Limit.IsZero() {
		h.Mode = hotparam.ModeWatch
	}
	return h
}

func (p *Publisher) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default: // a wake is pending, and it will find this change too
	}
}

func (p *Publisher) refuse(h hotparam.Hot, err error) {
	if p.stats.refused.Add(1) == 1 {
		p.cfg.Logger.Warn("key refused; further ones are only counted", "rule", h.Rule, "err", err)
	}
}

// Refresh notes the current counts of all keys of one part of the aggregator that are
// hot. A key that is not known, as it had no place among those that wait, may get one
// now: with the next refresh, whatever is hot is published or counted as waiting. It
// does not block; the counts travel with the next renewal.
func (p *Publisher) Refresh(part int, hot []hotparam.Hot) {
	p.mu.Lock()
	changed := p.desired.refresh(part, hot, p.entry)
	p.mu.Unlock()
	if changed {
		p.wakeUp()
	}
}

var errNotUTF8 = errors.New("the key's text is not UTF-8, which JSON cannot hold")

var errCounts = errors.New("the counts: want 0 <= Low <= High, and a rate and a ratio that are numbers of at least 0")

// countsMakeSense tells whether the counts can be published: Redis refuses a
// score that is no number, and with it the whole change.
func countsMakeSense(h hotparam.Hot) bool {
	return h.Low >= 0 && (h.High == hotparam.Unknown || h.High >= h.Low) &&
		h.Rate >= 0 && !math.IsInf(h.Rate, 0) && h.Ratio >= 0 && !math.IsInf(h.Ratio, 0)
}

// namable tells whether the key and its rate can be published.
func namable(h hotparam.Hot) error {
	if !utf8.ValidString(h.Text) {
		return errNotUTF8
	}
	if !hotparam.ValidRuleID(h.Rule) {
		return fmt.Errorf("rule id %q: want one or more of a-z 0-9 _ -", h.Rule)
	}
	if !countsMakeSense(h) {
		return errCounts
	}
	return nil
}

// publishable tells whether a watcher could read the entry: what one cannot
// would make it drop the whole change.
func publishable(h hotparam.Hot) error {
	if err := namable(h); err != nil {
		return err
	}
	h.Until = h.Since
	_, err := wire.ParseHotInfo(wire.AppendHotInfo(nil, h))
	return err
}

// Stats may be called at any time.
func (p *Publisher) Stats() PublisherStats {
	s := PublisherStats{
		Keys:       int(p.stats.keys.Load()),
		Refused:    p.stats.refused.Load(),
		Changes:    p.stats.changes.Load(),
		Renewals:   p.stats.renewals.Load(),
		Pruned:     p.stats.pruned.Load(),
		Rewrites:   p.stats.rewrites.Load(),
		Failures:   p.stats.failures.Load(),
		Unreadable: p.stats.unreadable.Load(),
		Connected:  p.stats.connected.Load(),
		Healed:     p.stats.healed.load(),
		Standby:    p.stats.standby.Load(),
		Takeovers:  p.stats.taken.Load(),
		Suspects:   int(p.stats.suspects.Load()),
		Instances:  int(p.stats.instances.Load()),
	}
	if v := p.stats.version.Load(); v != nil {
		s.Version = *v
	}
	if by := p.stats.fencedBy.Load(); by != nil {
		s.FencedBy = *by
	}
	if why := p.stats.trouble.Load(); why != nil {
		s.Trouble = *why
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Rules = p.desired.places()
	for _, of := range s.Rules {
		s.Waiting += of.Waiting
		s.Overflow += of.Overflow
	}
	for _, part := range p.desired.reported {
		s.Unpublishable += part.unpublishable
	}
	s.SuspectsOverflow = p.suspected.overflow
	return s
}
