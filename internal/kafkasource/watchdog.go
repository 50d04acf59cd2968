package kafkasource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A client can be stuck although the brokers are well: a corrupted answer may have named a
// throttle time of days, which the client obeys, or left it in an unforeseen state. Then it
// is replaced. Meanwhile partitions stand still, as when the group is lost, and are read
// again afterwards: the log is the state.

const (
	// watchEvery is how often a client is checked.
	watchEvery = time.Second
	// firstRestart and lastRestart are the first and the longest wait before another client.
	// The wait starts again from the first after a client has lasted for steadyFor.
	firstRestart = 100 * time.Millisecond
	lastRestart  = 10 * time.Second
	steadyFor    = time.Minute
	// maxAbandoned bounds the clients that were replaced and have not ended.
	maxAbandoned = 4
	// restartLog is the least time between two log lines about replacements.
	restartLog = time.Minute
)

// stuckError says that a client has to be replaced.
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
	replaced atomic.Bool             // another client has replaced it

	// Used by run alone.
	positions map[*worker]standing
	outSince  time.Time // since when partitions are lost and not assigned to anybody anew; zero: none are
}

// standing is a worker's position and since when it is there.
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

// probe asks, by a client of its own, for the group's coordinator and the ends of the
// partitions. It returns nil if all answered.
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
