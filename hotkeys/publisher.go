package hotkeys

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Publisher writes one owner's part of the set of hot keys to Redis. [Publisher.Publish],
// [Publisher.Refresh], [Publisher.Suspects] and [Publisher.Instances] record what to publish and
// do not block. [Publisher.Run] makes all calls to Redis. While Redis is unavailable changes
// accumulate; they are published as one change when it is available again. A Publisher is safe for
// concurrent use.
//
// Only one process holds an owner at a time. Each new holder raises the owner's epoch, the
// fencing token: a script with an earlier epoch changes nothing, however late it runs.
//
// Without a lease, the process that claims last holds the owner. The process that it replaced is
// fenced ([PublisherStats.FencedBy]). It stands by until the holder stops, or sends nothing for
// some time by Redis's clock. With a lease, the process that claims first holds the owner, and
// the others stand by ([PublisherStats.Standby]).
//
// A standby records changes and writes nothing until it takes over. It then keeps the entries in
// Redis and passes them to [PublisherConfig.Inherit]. Without Inherit it keeps the entries that
// are hot here too, and removes those that were hot here and have cooled. Entries that were never
// hot here are left to expire: a process that has just started may not have counted long enough
// to know.
type Publisher struct {
	cfg    PublisherConfig
	client redis.UniversalClient
	layout published.Layout
	holder string // this process's name as a holder of owners

	pruneEvery, trimEvery time.Duration

	mu        sync.Mutex // guards desired, suspected and summaries
	desired   desired
	suspected suspected
	summaries map[int]published.Summary // by part of the aggregator

	wake    chan struct{} // the desired set has changed
	suspect chan struct{} // there are new suspects

	judged atomic.Int64 // Unix milliseconds

	writer // used by Run's goroutine only

	stats base.Guarded[PublisherStats] // all but what Stats adds
}

// PublisherStats are a publisher's state, and its counters since it was made.
type PublisherStats struct {
	Version  string // version of the set, as last seen
	Keys     int    // keys that this publisher has published
	Waiting  int    // hot keys that are not published because the set is full
	Overflow uint64 // times that a hot key found no place, or lost its place
	// Rules holds Keys, Waiting and Overflow by rule: the configured rules, and all
	// others that had a hot key.
	Rules map[string]RulePlaces
	// Refused counts reports of keys that watchers could not read. The first is logged.
	Refused uint64
	// Unpublishable is the number of keys that are hot now and that watchers could not
	// read.
	Unpublishable int
	Changes       uint64 // changes written
	Renewals      uint64
	Pruned        uint64 // expired entries removed
	Rewrites      uint64 // whole sets written after Redis had lost state
	Failures      uint64 // failed calls
	// Unreadable counts entries in Redis that could not be read at [Publisher.Adopt] or
	// at a takeover.
	Unreadable uint64
	// Connected reports whether hot keys can be published, as far as is known.
	Connected bool
	// FencedBy is the holder and the epoch of the process that took this owner, if there
	// is no lease, or empty.
	FencedBy string
	// Trouble is the error of the current failure, or empty. If Connected is true, hot keys are
	// published nevertheless.
	Trouble string
	Healed  Healed
	// Standby reports whether another process holds the owner. Takeovers counts how
	// often this process got the owner after a standby; with a lease, each process
	// starts as a standby.
	Standby   bool
	Takeovers uint64

	Suspects         int    // suspects that this publisher has published
	SuspectsOverflow uint64 // suspects that found their set full
	Instances        int    // instances that send counts to this process
}

// NewPublisher returns a publisher. It starts nothing and makes no call; the caller
// closes the client, once Run has returned. Make the client with [NewClient], or set its
// ContextTimeoutEnabled and MaxRetries: -1, so that calls keep to their deadlines.
func NewPublisher(client redis.UniversalClient, cfg PublisherConfig) (*Publisher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(client); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	p := &Publisher{
		cfg:       cfg,
		client:    client,
		layout:    published.NewLayout(cfg.Namespace),
		holder:    newHolder(),
		desired:   newDesired(cfg.Cap, cfg.Rules),
		suspected: newSuspected(cfg.Rules),
		wake:      make(chan struct{}, 1),
		suspect:   make(chan struct{}, 1),
		writer:    writer{reclaim: true, sent: make(map[string]entryTerms), known: make(map[*redis.Script]bool)},

		pruneEvery: pruneEvery, trimEvery: trimEvery,
	}
	p.standby, p.silence = cfg.Lease > 0, cmp.Or(cfg.Lease, silenceAfter(cfg.BeatTTL))
	return p, nil
}

// Publish records a change of the hot set. It does not block. It ignores the entries'
// Owner and Until: entries are published under this publisher's owner, and Redis's clock
// sets their end.
func (p *Publisher) Publish(change published.Change) {
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
		base.Notify(p.wake)
	}
}

// entry returns h in the form in which this publisher publishes it.
func (p *Publisher) entry(h published.Hot) published.Hot {
	h.Owner = p.cfg.Owner
	if h.Mode == "" && h.Limit.IsZero() {
		h.Mode = rules.ModeWatch
	}
	return h
}

func (p *Publisher) refuse(h published.Hot, err error) {
	first := false
	p.stats.Change(func(s *PublisherStats) { s.Refused, first = s.Refused+1, s.Refused == 0 })
	if first {
		p.cfg.Logger.Warn("key refused; further ones are only counted", "rule", h.Rule, "err", err)
	}
}

// Refresh records all hot keys of one part of the aggregator with their current counts, which are
// published with the next renewal. It does not block. Only the best of the keys that wait for a
// place are kept, and the next Refresh reports the others again. So each hot key is published, or
// counted as waiting, by the next refresh at the latest.
func (p *Publisher) Refresh(part int, hot []published.Hot) {
	p.mu.Lock()
	changed := p.desired.refresh(part, hot, p.entry)
	p.mu.Unlock()
	if changed {
		base.Notify(p.wake)
	}
}

var errNotUTF8 = errors.New("the key's text is not UTF-8, which JSON cannot hold")

var errCounts = errors.New("the counts: want 0 <= Low <= High, and a rate and a ratio that are numbers of at least 0")

// countsMakeSense reports whether the counts can be published. Redis refuses a score that is not
// a number, and with it the whole change.
func countsMakeSense(h published.Hot) bool {
	return h.Low >= 0 && (h.High == published.Unknown || h.High >= h.Low) &&
		h.Rate >= 0 && !math.IsInf(h.Rate, 0) && h.Ratio >= 0 && !math.IsInf(h.Ratio, 0)
}

// namable returns an error if the key or its rate cannot be published.
func namable(h published.Hot) error {
	if !utf8.ValidString(h.Text) {
		return errNotUTF8
	}
	if !rules.ValidRuleID(h.Rule) {
		return fmt.Errorf("rule id %q: want one or more of a-z 0-9 _ -", h.Rule)
	}
	if !countsMakeSense(h) {
		return errCounts
	}
	return nil
}

// publishable returns an error if watchers could not read the entry. They would drop the whole
// change.
func publishable(h published.Hot) error {
	if err := namable(h); err != nil {
		return err
	}
	h.Until = h.Since
	_, err := published.ParseInfo(published.EncodeInfo(h))
	return err
}

// Standby reports whether another process holds the owner, with a lease or without: see
// [PublisherStats]. It costs less than [Publisher.Stats].
func (p *Publisher) Standby() bool {
	s := p.stats.Load()
	return s.Standby || s.FencedBy != ""
}

// Publishes reports whether changes recorded by this publisher reach Redis, as far as is known.
func (p *Publisher) Publishes() bool { return p.stats.Load().Connected && !p.Standby() }

// Stats returns the publisher's state and counters. It may be called at any time.
func (p *Publisher) Stats() PublisherStats {
	s := p.stats.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Rules = p.desired.places()
	for _, places := range s.Rules {
		s.Waiting += places.Waiting
		s.Overflow += places.Overflow
	}
	for _, part := range p.desired.reported {
		s.Unpublishable += part.unpublishable
	}
	s.SuspectsOverflow = p.suspected.overflow
	return s
}
