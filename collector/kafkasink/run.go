package kafkasink

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/base"
)

// The wait before connecting again doubles from firstBackoff to longestBackoff. That is short,
// since requests are not counted during the wait. Each instance makes one attempt at a time.
const (
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 2 * time.Second
)

// tick is the interval at which the sink checks for records to retry or to give up, and for a
// stalled producer.
const tick = 100 * time.Millisecond

// run connects and sends records until the sink is closed and the remaining records are
// delivered or given up.
func (s *Sink) run() {
	defer close(s.done)
	for failures := 0; !s.finished(); {
		before := s.tally.load().Records
		ses, err := s.connect()
		if err == nil {
			s.serve(ses)
			if s.tally.load().Records > before { // only a delivery ends an outage
				failures = 0
			}
		} else {
			s.reach.recordLost(err, time.Now())
			s.expire(time.Now().Add(-giveUp), err)
		}
		if !s.finished() {
			s.await(base.Backoff(failures, firstBackoff, longestBackoff))
			failures++
		}
	}
	s.queue.close()
	s.expire(time.Now().Add(time.Hour), errClosed) // all that are left: none was built later than that
	s.awaitSessions()
}

// finished reports whether the sink is closed, and either no records are left or the time that
// Close allows has passed.
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

// await waits for d, or less if the sink is closed during the wait. Once the sink is closed, it
// waits for at most a tick, so that retries stay quick.
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

// serve passes records to the producer and receives the results. It returns when the sink
// is finished or the producer must be replaced.
func (s *Sink) serve(ses *session) {
	defer s.endSession(ses)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	closing := s.closing
	for !s.finished() {
		s.sendReady(ses, time.Now())
		select {
		case <-ses.reported:
			if s.receive(ses) {
				s.tally.add(&s.tally.stats.Replaced.OutOfStep, 1)
				return
			}
		case <-s.wake:
		case now := <-ticks.C:
			s.expire(now.Add(-giveUp), errTooOld)
			if s.isStalled(ses, now) {
				s.replaceStalled("kafka takes no records though it is reached; reconnecting", s.stallAfter)
				return
			}
		case pause := <-ses.paused:
			s.replaceStalled("a broker of kafka asks for a long pause; reconnecting", pause)
			return
		case <-closing:
			closing = nil
		case <-s.ctx.Done():
		}
	}
}

func (s *Sink) replaceStalled(why string, d time.Duration) {
	s.tally.add(&s.tally.stats.Replaced.Stalled, 1)
	s.reach.recordStall(why, d)
}

// isStalled reports whether a session is of no use although the cluster is reached: the producer
// keeps records of a partition, or returns all records for retry. After damaged answers, a producer
// can be in such a state permanently.
func (s *Sink) isStalled(ses *session, now time.Time) bool {
	if _, records := s.queue.usage(); records == 0 || !s.reach.connected() {
		ses.moved = now
	}
	before := now.Add(-s.stallAfter)
	return s.queue.isStalled(before) || ses.moved.Before(before)
}

// sendReady passes the ready records to the producer, which does not block.
func (s *Sink) sendReady(ses *session, now time.Time) {
	for _, r := range s.queue.take(now) {
		ses.flying[r.msg] = r
		ses.client.TryProduce(ses.ctx, r.msg, ses.report)
	}
}

// receive handles the results that the producer has reported. It reports whether the producer
// is broken.
func (s *Sink) receive(ses *session) (broken bool) {
	now := time.Now()
	for _, result := range ses.takeResults() {
		r := ses.flying[result.msg]
		delete(ses.flying, result.msg)
		if result.err == nil || permanent(result.err) {
			ses.moved = now
		}
		if result.err == nil {
			s.queue.done(r, now)
			s.tally.deliver(r, now)
			r.free()
		} else if s.returned(r, result.err, now) {
			broken = true
		}
	}
	return broken
}

// returned schedules a record that failed in the producer for a retry, unless the error is
// permanent or the record is too old. It reports whether the producer is broken.
func (s *Sink) returned(r *record, err error, now time.Time) (broken bool) {
	if s.ctx.Err() != nil || permanent(err) || now.Sub(r.born) >= giveUp {
		s.queue.done(r, now)
		s.recordFailure(r, err, now)
		return false
	}
	r.address(s.topic)
	s.queue.retryLater(r, now, base.Backoff(r.tries, retryAfter, longestRetry))
	r.tries++
	return outOfStep(err)
}

// expire gives up the waiting records that were built before the given time.
func (s *Sink) expire(before time.Time, err error) {
	now := time.Now()
	for _, r := range s.queue.drop(before) {
		s.recordFailure(r, err, now)
	}
}

func (s *Sink) recordFailure(r *record, err error, now time.Time) {
	if errors.Is(err, kgo.ErrRecordTimeout) {
		err = errTooOld
	}
	if !permanent(err) {
		err = cmp.Or(s.reach.lastError(), err)
	}
	s.tally.fail(&s.tally.stats.Failed.Delivery, r.sum, fmt.Errorf("kafka: %w", err), now)
	r.free()
}
