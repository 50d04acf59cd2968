package graphitesource

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/hotparam/hotparam/internal/published"
)

// Source polls Graphite and publishes hot keys. Its methods are safe for concurrent use. Run
// must be called once.
type Source struct {
	cfg      Config
	schedule cron.Schedule
	patience time.Duration // longest time for which the counts' time may stand still
	client   *renderClient

	busy            sync.Mutex // guards the next two fields
	job             *job
	panicked        bool // the last run panicked
	panicLogged     time.Time
	inheriting      sync.Mutex      // guards inherited
	inherited       []published.Hot // keys for the next poll
	shown           atomic.Pointer[jobState]
	skipped, panics atomic.Int64
}

// patience is how long the time of the counts may stand still before that is reported.
const patience = 5 * time.Second

// New returns a source, or an error if the configuration is invalid. It starts nothing.
func New(c Config) (*Source, error) {
	c = c.withDefaults()
	if err := cmp.Or(c.checkLogin(), c.checkWindows()); err != nil {
		return nil, err
	}
	schedule, err := c.parseEvery()
	if err != nil {
		return nil, err
	}
	render, err := url.JoinPath(c.URL, "render")
	if err != nil {
		return nil, fmt.Errorf("graphite source: %w", err)
	}
	s := &Source{cfg: c, schedule: schedule}
	next := schedule.Next(time.Now())
	if next.IsZero() {
		return nil, fmt.Errorf("graphite source: Config.Every is %q, which never comes", c.Every)
	}
	s.patience = max(patience, 3*c.Step, 3*schedule.Next(next).Sub(next))
	s.client = newClient(&s.cfg, render)
	s.job = newJob(&s.cfg, s.client, s.patience)
	s.show()
	return s, nil
}

// Check sends one request to Graphite and returns an error if it fails. It counts nothing.
func (s *Source) Check(ctx context.Context) error {
	points := s.job.ledger.keep
	r, err := s.client.fetch(ctx, s.cfg.form(s.job.watches, ago(points*s.job.step), nil), mostPoints(points))
	if err != nil {
		return fmt.Errorf("graphite source: %w", err)
	}
	if beats := s.job.beats(r); beats == nil && s.cfg.Heartbeat != NoHeartbeat {
		s.cfg.Log.Info("StatsD has not written to Graphite yet", "heartbeat", s.cfg.Heartbeat)
	}
	return nil
}

// Run polls by the schedule until ctx ends, and returns when the request in progress has ended.
// It continues whatever Graphite answers.
func (s *Source) Run(ctx context.Context) error {
	s.busy.Lock()
	s.job.shown.moved = time.Now() // patience begins
	s.show()
	s.busy.Unlock()
	c := cron.New(cron.WithLogger(cron.DiscardLogger))
	c.Schedule(s.schedule, cron.FuncJob(func() { s.once(ctx) }))
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	s.client.http.CloseIdleConnections()
	return nil
}

// once runs the job, unless the previous run has not ended.
func (s *Source) once(ctx context.Context) {
	if !s.busy.TryLock() {
		s.skipped.Add(1)
		return
	}
	defer s.busy.Unlock()
	defer func() {
		p := recover()
		if p != nil {
			s.panics.Add(1)
			if now := time.Now(); !s.panicked && now.Sub(s.panicLogged) >= outageEvery {
				s.panicLogged = now
				s.cfg.Log.Error("the job of the Graphite source panicked; it is tried again", "panic", p, "stack", string(debug.Stack()))
			}
		}
		s.panicked = p != nil
		s.show()
	}()
	if ctx.Err() == nil {
		s.job.inheritHot(s.takeInherited())
		s.job.poll(ctx)
	}
}

// Inherit keeps keys hot that another process published before this one, for example before a
// restart. They stay hot until Graphite's points say otherwise. Keys whose rule was removed or
// whose value is allowed cool. The next poll does that. Inherit does not wait for it, since the
// caller has a lease to renew. It is safe for concurrent use.
func (s *Source) Inherit(hot []published.Hot) {
	s.inheriting.Lock()
	defer s.inheriting.Unlock()
	s.inherited = slices.Clone(hot) // the complete published state
}

func (s *Source) takeInherited() []published.Hot {
	s.inheriting.Lock()
	defer s.inheriting.Unlock()
	hot := s.inherited
	s.inherited = nil
	return hot
}

// show publishes the job's state for Stats.
func (s *Source) show() {
	shown := s.job.shown
	s.shown.Store(&shown)
}
