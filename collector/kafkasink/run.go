package kafkasink

import (
	"cmp"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// How long to wait before connecting again, doubled from the least to the most.
const (
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 5 * time.Second
)

// tick is how often records are looked at that wait for another try, or are too old.
const tick = 100 * time.Millisecond

// run connects, and sends what comes until the sink is closed and what is left is
// sent or given up.
func (s *Sink) run() {
	defer close(s.done)
	for wait := firstBackoff; !s.finished(); {
		ses, err := s.connect()
		if err == nil {
			wait = firstBackoff
			s.serve(ses)
			continue
		}
		s.reach.lost(err)
		s.expire(time.Now().Add(-giveUp), err)
		s.await(wait)
		wait = min(2*wait, longestBackoff)
	}
	s.queue.close()
	s.expire(time.Now().Add(time.Hour), errClosed)
}

// finished tells whether the sink is closed and nothing is left, or nothing more is
// to be waited for.
func (s *Sink) finished() bool {
	select {
	case <-s.ctx.Done():
		return true
	case <-s.closing:
		_, records := s.queue.usage()
		return records == 0
	default:
		return false
	}
}

// await waits, less if the sink is closed meanwhile.
func (s *Sink) await(d time.Duration) {
	closing := s.closing
	select {
	case <-closing:
		closing = nil
		d = min(d, tick)
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-closing:
	case <-s.ctx.Done():
	}
}

// serve hands records to the producer and hears what became of them. It returns
// when the sink is finished, or the producer is of no use any more.
func (s *Sink) serve(ses *session) {
	defer s.endSession(ses)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	closing := s.closing
	for !s.finished() {
		var input chan<- *sarama.ProducerMessage
		var message *sarama.ProducerMessage
		next := s.queue.ready(time.Now())
		if next != nil {
			input, message = ses.producer.Input(), next.msg
		}
		select {
		case input <- message:
			s.queue.take(next)
		case m := <-ses.producer.Successes():
			s.delivered(m)
		case e := <-ses.producer.Errors():
			if s.returned(e) {
				return
			}
		case <-s.wake:
		case now := <-ticks.C:
			s.expire(now.Add(-giveUp), errTooOld)
		case <-closing:
			closing = nil
		case <-s.ctx.Done():
		}
	}
}

// delivered is told of a record that the brokers have.
func (s *Sink) delivered(m *sarama.ProducerMessage) {
	if r, ok := m.Metadata.(*record); ok {
		s.queue.done(r)
		s.tally.deliver(r, time.Now())
		r.free()
	}
}

// returned is told of a record that the producer gave up: it is tried again where
// that may help. It tells whether the producer is broken.
func (s *Sink) returned(e *sarama.ProducerError) (broken bool) {
	r, ok := e.Msg.Metadata.(*record)
	if !ok {
		return false // a mark of the producer's own
	}
	r.back()
	now := time.Now()
	if s.ctx.Err() != nil || permanent(e.Err) || now.Sub(r.born) >= giveUp {
		s.queue.done(r)
		s.failed(r, e.Err, now)
		return false
	}
	r.tries++
	s.queue.again(r, now.Add(retryEvery))
	return r.tries > 1 && outOfStep(e.Err)
}

// expire gives up what has been waiting since before the instant.
func (s *Sink) expire(before time.Time, err error) {
	now := time.Now()
	for _, r := range s.queue.drop(before) {
		s.failed(r, cmp.Or(s.reach.trouble(), err), now)
	}
}

func (s *Sink) failed(r *record, err error, now time.Time) {
	s.tally.fail(delivery, r.mass, fmt.Errorf("kafka: %w", err), now)
	r.free()
}
