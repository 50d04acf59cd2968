package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/backoff"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A client can be stuck though the brokers are well: an answer that was damaged may
// have named a throttle time of days, which it obeys, or left it in a state that its
// authors did not think of. Then it is replaced. Partitions stand still meanwhile, as
// when the group is lost, and are read again: the log is the state.

const (
	// watchEvery is how often a client is looked at.
	watchEvery = time.Second
	// firstRestart and lastRestart are waited before another client, at first and
	// at most; steadyFor is how long one must have lasted to begin anew.
	firstRestart = 100 * time.Millisecond
	lastRestart  = 10 * time.Second
	steadyFor    = time.Minute
	// maxAbandoned bounds the clients that were replaced and have not ended.
	maxAbandoned = 4
	// restartLog is how often at most a replacement is logged.
	restartLog = time.Minute
)

// stuckReason is why a client is replaced.
type stuckReason int

const (
	stuckThrottled stuckReason = iota
	stuckFetch
	stuckEnds
	stuckGroup
	stuckReasons
)

// stuckError is that a client has to be replaced.
type stuckError struct {
	reason stuckReason
	what   string
}

func (e *stuckError) Error() string { return "kafka source: the client is stuck: " + e.what }

// watchdog looks after one client. It hears of each answer as a hook.
type watchdog struct {
	source   *Source
	end      context.CancelCauseFunc // of the client's loops
	groupAt  atomic.Int64            // when the group last answered, in nanoseconds since the Unix epoch
	replaced atomic.Bool             // the client has no say any more

	// Used by run alone.
	positions map[*worker]standing
	outSince  time.Time // since when partitions are lost and not assigned to anybody anew; zero: none are
}

// standing is where a worker was seen first at its position.
type standing struct {
	position int64
	since    time.Time
}

// OnBrokerThrottle implements [kgo.HookBrokerThrottle]. The client waits for as long as
// the broker says. What is longer than a session would cost the membership anyway.
func (d *watchdog) OnBrokerThrottle(meta kgo.BrokerMetadata, pause time.Duration, isAhead bool) {
	if isAhead && pause > d.source.cfg.Session {
		d.end(&stuckError{stuckThrottled, fmt.Sprintf("broker %s asks for a pause of %v", meta.Host, pause)})
	}
}

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (d *watchdog) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	switch kmsg.Key(key) {
	case kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat:
		if e2e.Err() == nil {
			d.groupAt.Store(time.Now().UnixNano())
		}
	}
}

// run replaces the client when it is stuck: when it gets no answers for as long as a
// request may take after another client got them.
func (d *watchdog) run(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var probeAt, answered time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		stuck, partitions := d.look(now)
		switch {
		case stuck == nil:
			answered = time.Time{}
		case !answered.IsZero():
			if now.Sub(answered) > d.source.cfg.Connection.Timeout {
				d.end(stuck)
				return
			}
		case now.After(probeAt):
			// Brokers that are away are asked seldom.
			probeAt = now.Add(d.source.cfg.Session/2 + rand.N(d.source.cfg.Session/2))
			if d.source.probe(ctx, partitions) == nil {
				answered = time.Now()
			}
		}
	}
}

// look returns what seems to be stuck, and partitions to ask another client for.
func (d *watchdog) look(now time.Time) (*stuckError, []int32) {
	c := &d.source.cfg
	workers := d.source.present()
	var silent, unread []int32
	positions := make(map[*worker]standing, len(workers))
	for _, w := range workers {
		at := w.shown.Load()
		p, known := d.positions[w]
		if !known || p.position != at.position || at.end <= at.position || len(w.queue) > 0 || w.paused.Load() != nil {
			p = standing{at.position, now}
		}
		positions[w] = p
		if now.Sub(time.Unix(0, w.toldAt.Load())) > c.Session {
			silent = append(silent, w.partition)
		}
		if now.Sub(p.since) > c.Session {
			unread = append(unread, w.partition)
		}
	}
	d.positions = positions
	if !d.source.isOut() {
		d.outSince = time.Time{}
	} else if d.outSince.IsZero() {
		d.outSince = now
	}
	patience := 2*c.Session + c.Connection.Timeout
	switch {
	case len(unread) > 0:
		return &stuckError{stuckFetch, fmt.Sprintf("partitions %v are not read for %v", unread, c.Session)}, unread
	case len(silent) > 0:
		return &stuckError{stuckEnds, fmt.Sprintf("leaders of partitions %v tell it nothing for %v", silent, c.Session)}, silent
	case now.Sub(time.Unix(0, d.groupAt.Load())) > patience:
		return &stuckError{stuckGroup, fmt.Sprintf("group %s does not answer it for %v", c.Group, patience)}, nil
	case !d.outSince.IsZero() && now.Sub(d.outSince) > patience:
		// Answers alone are no membership: a client that fails to join gets them, too.
		return &stuckError{stuckGroup, fmt.Sprintf("it is out of group %s for %v", c.Group, patience)}, nil
	}
	return nil, nil
}

// probe asks by a client of its own whether the group has a coordinator, and how far
// the partitions go; nil: all answered.
func (s *Source) probe(ctx context.Context, partitions []int32) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Connection.Timeout)
	defer cancel()
	client, err := s.connect(kgo.WithContext(ctx)) // else a request for metadata knows no end
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := s.describe(ctx, client); err != nil {
		return err
	}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKey, find.CoordinatorKeys = s.cfg.Group, []string{s.cfg.Group}
	if _, err := find.RequestWith(ctx, client); err != nil {
		return err
	}
	times := make(map[int32]int64, len(partitions))
	for _, p := range partitions {
		times[p] = toEnd
	}
	_, err = s.listOffsets(ctx, client, times)
	return err
}

// runClients runs one client after the other until ctx ends or the brokers refuse. It
// returns the last one, which is to be left.
func (s *Source) runClients(ctx context.Context) (*groupClient, error) {
	var lines loglimit.Limit
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		client, err := s.runClient(ctx)
		var stuck *stuckError
		if !errors.As(err, &stuck) {
			return client, err
		}
		now := time.Now()
		s.stats.replaced[stuck.reason].Add(1)
		if _, ok := lines.Allow(loglimit.Rate{Burst: 1, Every: restartLog}, now); ok {
			s.cfg.Log.Warn("replacing the client of the brokers; partitions stand still until it has joined the group", "why", stuck.what)
		}
		if now.Sub(began) > steadyFor {
			failures = 0
		}
		if !s.abandon(ctx, client) {
			break
		}
		sleep(ctx, backoff.After(failures, firstRestart, lastRestart))
	}
	return nil, nil
}

// runClient joins the group by a new client, and works until ctx ends, the brokers
// refuse it or it is stuck.
func (s *Source) runClient(ctx context.Context) (*groupClient, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	dog := &watchdog{source: s, end: end}
	dog.groupAt.Store(time.Now().UnixNano())
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	joined, err := s.connect(append(s.groupOptions(dog), kgo.WithContext(life))...)
	if err != nil {
		cancel()
		return nil, err
	}
	client := &groupClient{joined, cancel}
	var loops sync.WaitGroup
	loops.Go(func() { s.watchEnds(ctx, joined) })
	loops.Go(func() { s.watchSize(ctx, joined) })
	loops.Go(func() { s.commitPositions(ctx, joined) })
	loops.Go(func() { dog.run(ctx) })
	err = s.poll(ctx, joined)
	wait := s.cfg.Connection.Timeout
	var stuck *stuckError
	if errors.As(context.Cause(ctx), &stuck) {
		dog.replaced.Store(true)
		s.standStill()
		err, wait = stuck, endsTimeout
	}
	end(err)
	// A request for metadata has no deadline but the client's life.
	late := time.AfterFunc(wait, cancel)
	loops.Wait()
	late.Stop()
	return client, err
}

// standStill stops all workers until the group assigns partitions to the next client.
func (s *Source) standStill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if !w.isLost.Swap(true) {
			s.stats.Lost.Add(1)
		}
	}
}

// abandon ends a client that is stuck. It waits for that for as long as it takes to
// leave the group, at most; with too many that have not ended, until one has. It
// reports whether ctx goes on.
func (s *Source) abandon(ctx context.Context, client *groupClient) bool {
	select {
	case s.abandoned <- struct{}{}:
	case <-ctx.Done():
		s.leave(ctx, client)
		return false
	}
	done := make(chan struct{})
	go func() {
		defer func() { <-s.abandoned }()
		defer close(done)
		s.leave(ctx, client)
	}()
	limit := time.NewTimer(s.cfg.Connection.Timeout + time.Second)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		s.stats.Abandoned.Add(1)
	case <-ctx.Done():
	}
	return true
}

// awaitAbandoned waits for clients that were replaced, for as long as leaving takes at
// most.
func (s *Source) awaitAbandoned() {
	limit := time.NewTimer(s.cfg.Connection.Timeout + time.Second)
	defer limit.Stop()
	for range maxAbandoned {
		select {
		case s.abandoned <- struct{}{}:
		case <-limit.C:
			return
		}
	}
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
