package kafkasink

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/hotparam/hotparam/internal/backoff"
)

// defaultRefresh is how often the cluster is asked for the topic's partitions.
const defaultRefresh = 30 * time.Second

// session is a client and a producer.
type session struct {
	cancel   context.CancelFunc // breaks the connections
	client   sarama.Client
	producer sarama.AsyncProducer

	flying           map[*record]struct{} // that the producer has
	ended, refreshed chan struct{}        // to and from keepRefreshed
	closed           chan struct{}        // when nothing of it runs any more
}

const (
	// maxSessions bounds the sessions that there are at once: the one in use, and
	// those that were abandoned and have not ended yet.
	maxSessions = 5
	// abandonAfter is how long a session may take to end once its connections are
	// broken; then the next one begins without waiting for it.
	abandonAfter = time.Second
)

// connect reaches the cluster and gets to know the topic's partitions.
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
	client, err := sarama.NewClient(s.cluster.Brokers, s.cluster.config(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	p := &patient{Client: client, sink: s, ctx: ctx}
	ses := &session{
		cancel: cancel, client: client, flying: make(map[*record]struct{}),
		ended: make(chan struct{}), refreshed: make(chan struct{}), closed: make(chan struct{}),
	}
	if err = p.refresh(); err == nil {
		ses.producer, err = sarama.NewAsyncProducerFromClient(p)
	}
	if err != nil {
		cancel()
		_ = client.Close()
		return nil, err
	}
	go ses.keepRefreshed(p)
	return ses, nil
}

// patient is a client that waits for leaders and brokers, as long as records are
// tried. Sarama's own waiting cannot be broken off, and its circuit breaker would
// turn records away for 10 s more after three failures.
type patient struct {
	sarama.Client
	sink *Sink
	ctx  context.Context
}

// refresh asks the cluster once. That some partitions have no leader is no error.
func (p *patient) refresh() error {
	err := p.Client.RefreshMetadata(p.sink.topic)
	if err != nil && !errors.Is(err, sarama.ErrLeaderNotAvailable) {
		p.sink.reach.lost(err, time.Now())
		return err
	}
	ids, err := p.Client.Partitions(p.sink.topic)
	if err != nil {
		return err
	}
	p.sink.know(len(ids))
	return nil
}

// RefreshMetadata returns when the cluster answered.
func (p *patient) RefreshMetadata(...string) error {
	return p.wait(p.refresh)
}

// Leader returns when the partition has a leader.
func (p *patient) Leader(topic string, partition int32) (leader *sarama.Broker, err error) {
	err = p.wait(func() (err error) {
		leader, err = p.Client.Leader(topic, partition)
		return err
	})
	return leader, err
}

// Partitions are those of the topic: the numbers from 0. They are known.
func (p *patient) Partitions(string) ([]int32, error) { return *p.sink.ids.Load(), nil }

func (p *patient) wait(try func() error) error {
	end := time.Now().Add(giveUp)
	for failures := 0; ; failures++ {
		err := try()
		if err == nil || p.ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		pause(p.ctx, backoff.After(failures, retryAfter, retrySlowly))
	}
}

// know takes note of how many partitions there are.
func (s *Sink) know(n int) {
	if n != s.partitions() {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(i)
		}
		s.ids.Store(&ids)
	}
	s.reach.found(s.topic, n, time.Now())
}

// keepRefreshed asks the cluster from time to time, so that new partitions are used.
func (s *session) keepRefreshed(p *patient) {
	defer close(s.refreshed)
	for {
		select {
		case <-s.ended:
			return
		case <-time.After(p.sink.refreshEvery):
			_ = p.refresh() // what is wrong is told, and asked again
		}
	}
}

// endSession ends the session. The producer tells of each record that it has; it need
// not wait for any once the session's context has ended. A producer that does not, or
// connections that do not end, are left to themselves after a while.
func (s *Sink) endSession(ses *session) {
	// A producer that is only replaced gets time for what it has on its way.
	late := time.AfterFunc(patience, ses.cancel)
	defer late.Stop()
	limit := time.NewTimer(patience + abandonAfter)
	defer limit.Stop()
	close(ses.ended)
	ses.producer.AsyncClose()
	successes, failures := ses.producer.Successes(), ses.producer.Errors()
	for successes != nil || failures != nil {
		select {
		case m, ok := <-successes:
			if !ok {
				successes = nil
				continue
			}
			s.delivered(ses, m)
		case e, ok := <-failures:
			if !ok {
				failures = nil
				continue
			}
			s.returned(ses, e)
		case <-limit.C:
			s.abandon(ses, time.Now())
			go s.closeSession(ses)
			return
		}
	}
	go s.closeSession(ses)
	select {
	case <-ses.closed:
	case <-limit.C:
	}
}

// closeSession ends what is left of a session whose records nobody awaits any more.
func (s *Sink) closeSession(ses *session) {
	ses.cancel()
	var drained sync.WaitGroup
	drained.Go(func() {
		for range ses.producer.Successes() {
		}
	})
	for range ses.producer.Errors() {
	}
	drained.Wait()
	_ = ses.client.Close()
	<-ses.refreshed
	close(ses.closed)
	<-s.sessions
}

// abandon takes the records back that a producer does not give back. It may still
// send one: aggregators take the first.
func (s *Sink) abandon(ses *session, now time.Time) {
	s.abandoned.Add(1)
	for r := range ses.flying {
		t := r.twin()
		if s.ctx.Err() != nil || now.Sub(r.born) >= giveUp {
			s.queue.done(t, now)
			s.failed(t, errAbandoned, now)
			continue
		}
		t.tries++
		s.queue.again(t, now, 0)
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
