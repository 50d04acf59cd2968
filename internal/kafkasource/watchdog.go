package kafkasource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/base"
)

// A client can be stuck although the brokers are well. A corrupted answer may have named a
// throttle time of days, which the client obeys, or left it in an unforeseen state. Then it is
// replaced. Until its replacement has joined, partitions stand still, as after the loss of the
// membership. Then they are read again: the log is the state.

const (
	// watchEvery is the interval at which a client is checked.
	watchEvery = time.Second
	// firstRestart and lastRestart are the first and the longest wait before another client.
	// The wait starts from firstRestart again after a client has lasted for steadyFor.
	firstRestart = 100 * time.Millisecond
	lastRestart  = 10 * time.Second
	steadyFor    = time.Minute
	// maxAbandoned bounds the replaced clients that have not ended.
	maxAbandoned = 4
	// restartLog is the least time between two log lines about replacements.
	restartLog = time.Minute
)

// stuckError is the reason to replace a client.
type stuckError struct {
	count *atomic.Int64 // counter of this reason
	what  string
}

func (e *stuckError) Error() string { return "kafka source: the client is stuck: " + e.what }

// watchdog watches one client. As a hook of the client it receives each answer.
type watchdog struct {
	source   *Source
	end      context.CancelCauseFunc // ends the client's loops
	groupAt  atomic.Int64            // time of the group's last answer, in nanoseconds since the Unix epoch
	replaced atomic.Bool             // another client has replaced it

	// Used only by run.
	positions map[*worker]standing
	outSince  time.Time // time at which partitions were lost that have not been assigned since; zero if there are none
}

// standing is a worker's position and the time since which it has not moved.
type standing struct {
	position int64
	since    time.Time
}

// OnBrokerThrottle implements [kgo.HookBrokerThrottle]. The client waits for as long as the
// broker says. A wait longer than a session would cost the membership anyway.
func (d *watchdog) OnBrokerThrottle(meta kgo.BrokerMetadata, pause time.Duration, isAhead bool) {
	if isAhead && pause > d.source.cfg.Session {
		d.end(&stuckError{&d.source.stats.Replaced.Throttled, fmt.Sprintf("broker %s asks for a pause of %v", meta.Host, pause)})
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

// run replaces the client when it is stuck: when another client gets answers, and this one gets
// none in the time that a request may take.
func (d *watchdog) run(ctx context.Context) {
	var probeAt, answered time.Time
	for range base.Ticks(ctx, watchEvery) {
		now := time.Now()
		stuck, partitions := d.findStuck(now)
		switch {
		case stuck == nil:
			answered = time.Time{}
		case !answered.IsZero():
			if now.Sub(answered) > d.source.cfg.Connection.Timeout {
				d.end(stuck)
				return
			}
		case now.After(probeAt):
			// Ask unavailable brokers rarely.
			probeAt = now.Add(d.source.cfg.Session/2 + rand.N(d.source.cfg.Session/2))
			if d.source.probe(ctx, partitions) == nil {
				answered = time.Now()
			}
		}
	}
}

// findStuck returns why the client seems to be stuck, or nil, and the partitions to ask for with
// another client.
func (d *watchdog) findStuck(now time.Time) (*stuckError, []int32) {
	c := &d.source.cfg
	workers := d.source.ownedWorkers()
	var silent, unread []int32
	positions := make(map[*worker]standing, len(workers))
	for _, w := range workers {
		shown := w.shown.Load()
		p, known := d.positions[w]
		if !known || p.position != shown.position || shown.end <= shown.position || len(w.queue) > 0 || w.paused.Load() != nil {
			p = standing{shown.position, now}
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
	patience, replaced := 2*c.Session+c.Connection.Timeout, &d.source.stats.Replaced
	switch {
	case len(unread) > 0:
		return &stuckError{&replaced.Fetch, fmt.Sprintf("partitions %v have not been read for %v", unread, c.Session)}, unread
	case len(silent) > 0:
		return &stuckError{&replaced.Ends, fmt.Sprintf("leaders of partitions %v have not answered it for %v", silent, c.Session)}, silent
	case now.Sub(time.Unix(0, d.groupAt.Load())) > patience:
		return &stuckError{&replaced.Group, fmt.Sprintf("group %s has not answered it for %v", c.Group, patience)}, nil
	case !d.outSince.IsZero() && now.Sub(d.outSince) > patience:
		// Answers do not prove membership: a client that fails to join gets them too.
		return &stuckError{&replaced.Group, fmt.Sprintf("it has been out of group %s for %v", c.Group, patience)}, nil
	}
	return nil, nil
}

// probe asks for the group's coordinator and the ends of the partitions, with a client of its
// own. It returns nil if all answered.
func (s *Source) probe(ctx context.Context, partitions []int32) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Connection.Timeout)
	defer cancel()
	client, err := s.connect(kgo.WithContext(ctx)) // a metadata request has no other deadline
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
