package kafkasink

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/kafkaclient"
)

// defaultRefresh is the interval at which the cluster is asked for the topic's partitions.
const defaultRefresh = 30 * time.Second

// session is a client that produces.
type session struct {
	ctx    context.Context
	cancel context.CancelFunc // ends all requests
	client *kgo.Client

	flying           map[*kgo.Record]*record // the records that the producer has
	moved            time.Time               // when it last delivered something, or had nothing to deliver
	ended, refreshed chan struct{}           // stop keepRefreshed, and report that it has stopped
	failing          chan struct{}           // holds an element after a broker did not answer
	longestPause     time.Duration
	paused           chan time.Duration // holds an element after a broker asked for a pause longer than that
	closed           chan struct{}      // closed when its goroutines have ended

	mu       sync.Mutex
	results  []produceResult // results not taken yet: at most one for each record in flying
	reported chan struct{}   // holds an element if there are results
}

// produceResult is the producer's result for a record.
type produceResult struct {
	msg *kgo.Record
	err error
}

// report records a result. The producer calls it.
func (s *session) report(msg *kgo.Record, err error) {
	s.mu.Lock()
	s.results = append(s.results, produceResult{msg, err})
	s.mu.Unlock()
	base.Notify(s.reported)
}

func (s *session) takeResults() []produceResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.results
	s.results = nil
	return all
}

// OnBrokerConnect implements [kgo.HookBrokerConnect].
func (s *session) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		base.Notify(s.failing)
	}
}

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (s *session) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	if e2e.Err() != nil {
		base.Notify(s.failing)
	}
}

// OnBrokerThrottle implements [kgo.HookBrokerThrottle]. The client sends nothing on a connection
// for the time in an answer, up to 24 days. A damaged answer would stop the sink for that long, so
// the session ends, and with it the pause.
func (s *session) OnBrokerThrottle(_ kgo.BrokerMetadata, pause time.Duration, isAhead bool) {
	if isAhead && pause > s.longestPause {
		select {
		case s.paused <- pause:
		default:
		}
		s.cancel()
	}
}

const (
	// maxSessions bounds the number of sessions at a time: the one in use, and abandoned
	// ones that have not ended yet.
	maxSessions = 5
	// abandonAfter is the time that a session may take to end once its connections are
	// broken. After that, the next session begins without waiting for it.
	abandonAfter = time.Second
)

// connect begins a session: it connects to the cluster and reads the topic's partitions.
func (s *Sink) connect() (*session, error) {
	select {
	case s.sessions <- struct{}{}:
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
	ses, err := s.open()
	if err != nil {
		<-s.sessions
	}
	return ses, err
}

func (s *Sink) open() (*session, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	ses := &session{
		ctx: ctx, cancel: cancel, flying: make(map[*kgo.Record]*record), moved: time.Now(),
		ended: make(chan struct{}), refreshed: make(chan struct{}), failing: make(chan struct{}, 1),
		closed: make(chan struct{}), reported: make(chan struct{}, 1),
		longestPause: s.longestPause, paused: make(chan time.Duration, 1),
	}
	var err error
	ses.client, err = s.cluster.client(ctx, ses)
	if err != nil {
		cancel()
		return nil, err
	}
	if err := s.refresh(ses); err != nil {
		cancel()
		ses.client.Close()
		return nil, err
	}
	go s.keepRefreshed(ses)
	return ses, nil
}

// refresh reads the topic's metadata once. A partition without a leader is not an error.
func (s *Sink) refresh(ses *session) error {
	n, err := s.askPartitions(ses)
	if err != nil {
		if ses.ctx.Err() == nil {
			s.reach.recordLost(err, time.Now())
		}
		return err
	}
	if s.partitions.Swap(int32(n)) != int32(n) {
		ses.client.ForceMetadataRefresh() // so that records for unknown partitions are returned
	}
	s.reach.recordFound(s.topic, n, time.Now())
	return nil
}

// askPartitions asks the cluster for the number of the topic's partitions.
func (s *Sink) askPartitions(ses *session) (int, error) {
	ctx, cancel := context.WithTimeout(ses.ctx, 2*s.cluster.Timeout)
	defer cancel()
	t, _, err := kafkaclient.AskTopic(ctx, ses.client, s.topic)
	if err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !kafkaclient.IsOneOf(err, kerr.LeaderNotAvailable) {
		return 0, err
	}
	if len(t.Partitions) == 0 {
		return 0, fmt.Errorf("kafka: topic %s has no partitions", s.topic)
	}
	return len(t.Partitions), nil
}

// keepRefreshed reads the metadata periodically, so that new partitions are used. It also reads
// it after a broker did not answer, so that an outage of the cluster and its end are noticed.
func (s *Sink) keepRefreshed(ses *session) {
	defer close(ses.refreshed)
	for {
		select {
		case <-ses.ended:
			return
		case <-ses.failing:
		case <-time.After(s.refreshEvery):
		}
		for failures := 0; s.refresh(ses) != nil && !isClosed(ses.ended); failures++ {
			base.WaitBackoff(ses.ctx, failures, retryAfter, longestRetry)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// endSession ends the session. Once the session's context has ended, the producer reports the
// result of each record that it has without waiting. If it does not, or its connections do not
// end, the session is abandoned after a while.
func (s *Sink) endSession(ses *session) {
	close(ses.ended)
	context.AfterFunc(ses.ctx, func() { s.closeSession(ses) })
	// A producer that is replaced gets time to deliver its records.
	late := time.AfterFunc(patience, ses.cancel)
	defer late.Stop()
	limit := time.NewTimer(patience + abandonAfter)
	defer limit.Stop()
	for len(ses.flying) > 0 {
		select {
		case <-ses.reported:
			s.receive(ses)
		case <-limit.C:
			s.abandon(ses, time.Now())
			return
		}
	}
	ses.cancel()
	select {
	case <-ses.closed:
	case <-limit.C:
	}
}

// closeSession ends the client and the goroutines of a session.
func (s *Sink) closeSession(ses *session) {
	ses.client.Close()
	<-ses.refreshed
	close(ses.closed)
	<-s.sessions
}

// abandon retries the records that a producer does not return, by copies of their messages. The
// producer may still send the originals, so that records arrive twice; aggregators count the first.
func (s *Sink) abandon(ses *session, now time.Time) {
	s.tally.add(&s.tally.stats.Abandoned, 1)
	for _, r := range ses.flying {
		r.leave(s.topic)
		if s.ctx.Err() != nil || now.Sub(r.born) >= giveUp {
			s.queue.done(r, now)
			s.recordFailure(r, errAbandoned, now)
			continue
		}
		r.tries++
		s.queue.retryLater(r, now, 0)
	}
	clear(ses.flying)
}

// awaitSessions waits for the sessions to end, for abandonAfter at most.
func (s *Sink) awaitSessions() {
	limit := time.NewTimer(abandonAfter)
	defer limit.Stop()
	for range maxSessions {
		select {
		case s.sessions <- struct{}{}:
			defer func() { <-s.sessions }()
		case <-limit.C:
			return
		}
	}
}
