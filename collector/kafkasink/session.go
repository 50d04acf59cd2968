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

	flying           map[*record]struct{} // the records that the producer has
	ended, refreshed chan struct{}        // stop keepRefreshed, and report that it has stopped
	closed           chan struct{}        // closed when none of its goroutines runs
}

const (
	// maxSessions bounds the sessions at a time: the one in use, and abandoned ones that
	// have not ended yet.
	maxSessions = 5
	// abandonAfter is how long a session may take to end once its connections are
	// broken. After that the next one begins without waiting for it.
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

// patient is a client that waits for leaders and brokers for as long as records are tried.
// Sarama's own waits cannot be interrupted, and its circuit breaker would refuse records
// for 10 s after three failures.
type patient struct {
	sarama.Client
	sink *Sink
	ctx  context.Context
}

// refresh reads the topic's metadata once. A partition without a leader is no error.
func (p *patient) refresh() error {
	err := p.Client.RefreshMetadata(p.sink.topic)
	if err != nil && !errors.Is(err, sarama.ErrLeaderNotAvailable) {
		p.sink.reach.recordLost(err, time.Now())
		return err
	}
	ids, err := p.Client.Partitions(p.sink.topic)
	if err != nil {
		return err
	}
	p.sink.setPartitions(len(ids))
	return nil
}

// RefreshMetadata returns once the cluster has answered.
func (p *patient) RefreshMetadata(...string) error {
	return p.wait(p.refresh)
}

// Leader returns once the partition has a leader.
func (p *patient) Leader(topic string, partition int32) (leader *sarama.Broker, err error) {
	err = p.wait(func() (err error) {
		leader, err = p.Client.Leader(topic, partition)
		return err
	})
	return leader, err
}

// Partitions returns the ids of the topic's partitions, from 0 on, without a call.
func (p *patient) Partitions(string) ([]int32, error) { return *p.sink.ids.Load(), nil }

// wait calls try until it succeeds, the session ends or giveUp is over.
func (p *patient) wait(try func() error) error {
	end := time.Now().Add(giveUp)
	for failures := 0; ; failures++ {
		err := try()
		if err == nil || p.ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		backoff.Wait(p.ctx, failures, retryAfter, retrySlowly)
	}
}

// setPartitions records that the cluster was reached and how many partitions the topic has.
func (s *Sink) setPartitions(n int) {
	if n != s.partitions() {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(i)
		}
		s.ids.Store(&ids)
	}
	s.reach.recordFound(s.topic, n, time.Now())
}

// keepRefreshed reads the metadata from time to time, so that new partitions are used.
func (s *session) keepRefreshed(p *patient) {
	defer close(s.refreshed)
	for {
		select {
		case <-s.ended:
			return
		case <-time.After(p.sink.refreshEvery):
			_ = p.refresh() // which reports errors, and is called again
		}
	}
}

// endSession ends the session. The producer reports the result of each record that it has,
// without waiting for any once the session's context has ended. If it does not, or its
// connections do not end, the session is abandoned after a while.
func (s *Sink) endSession(ses *session) {
	// A producer that is replaced gets time to deliver the records that it has.
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

// closeSession ends the client and the goroutines of a session, and discards what the
// producer still reports.
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

// abandon takes back the records that a producer does not return. The producer may still
// send them, so that they arrive twice; aggregators count the first.
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
		s.queue.retryLater(t, now, 0)
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
