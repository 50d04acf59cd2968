package breaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

var errAway = errors.New("connection refused")

// service is a set of nodes that are all well, or all not.
type service struct {
	*Set[string]
	log  testenv.LogBuffer
	well atomic.Bool
}

func newService() *service {
	s := &service{}
	s.Set = New(Config[string]{
		Probe: func(context.Context, string) error {
			if s.well.Load() {
				return nil
			}
			return errAway
		},
		Min: 100 * time.Millisecond, Max: 2 * time.Second, Begun: "away", Over: "back",
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	return s
}

// bubble runs f while the service's Run is running.
func bubble(t *testing.T, f func(t *testing.T, s *service)) {
	synctest.Test(t, func(t *testing.T) {
		s, done := newService(), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { defer close(done); s.Run(ctx) }()
		synctest.Wait()
		f(t, s)
		cancel()
		<-done
	})
}

// Back is called once the node is open to calls, since its callee has no other reason to look
// again.
func TestBackWhenCallsGoThere(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		var calls atomic.Int64
		s.Back = func() {
			if calls.Add(1); s.open.Load() != 0 || s.nodeAway("a") {
				t.Error("f was called before")
			}
		}
		s.fail("a")
		s.fail("a")
		time.Sleep(time.Second)
		if !s.Any() || calls.Load() != 0 {
			t.Fatalf("unavailable: %v, f was called %d times", s.Any(), calls.Load())
		}
		s.well.Store(true)
		time.Sleep(3 * time.Second)
		if s.Any() || calls.Load() != 1 {
			t.Errorf("unavailable: %v, f was called %d times, want once", s.Any(), calls.Load())
		}
	})
}

func (s *service) nodeAway(name string) bool { return (*s.nodes.Load())[name].unavailable.Load() }

func (s *service) lines() string {
	return s.log.String()
}

func (s *service) fail(node string) { s.Failed(node, time.Now(), errAway, node) }

func TestOneNodeIsNotAnother(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		s.fail("a")
		if !s.Away(t.Context(), "a") || s.Away(t.Context(), "b") || s.Stats().Unavailable != 1 {
			t.Errorf("%+v", s.Stats())
		}
		s.well.Store(true)
		time.Sleep(time.Second)
		if s.Any() || s.Away(t.Context(), "a") || s.UntilProbe("a") != 0 {
			t.Errorf("%+v", s.Stats())
		}
	})
}

// A flapping node costs two lines a minute, and the next line says how often it flapped. An outage
// that lasts is logged even if it began in such a minute.
func TestLinesAreFew(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		start := time.Now()
		for range 600 {
			s.well.Store(true)
			s.fail("a")
			time.Sleep(500 * time.Millisecond)
		}
		minutes := int(time.Since(start) / time.Minute)
		if n := strings.Count(s.lines(), "\n"); n < minutes || n > 2*(minutes+1) {
			t.Errorf("%d lines in %d minutes:\n%s", n, minutes, s.lines())
		}
		if !strings.Contains(s.lines(), "outages_not_logged=") {
			t.Error(s.lines())
		}
		time.Sleep(time.Minute)
		s.fail("a")
		time.Sleep(3 * time.Second)
		s.log.Take()
		s.well.Store(false)
		s.fail("a")
		time.Sleep(10 * time.Second)
		if s.lines() != "" {
			t.Errorf("too soon:\n%s", s.lines())
		}
		time.Sleep(time.Minute)
		if n := strings.Count(s.lines(), "\n"); n != 1 || !strings.Contains(s.lines(), "msg=away node=a") {
			t.Errorf("one that lasts:\n%s", s.lines())
		}
		s.well.Store(true)
		time.Sleep(3 * time.Second)
		if n := strings.Count(s.lines(), "\n"); n != 2 || !strings.Contains(s.lines(), "msg=back node=a") {
			t.Errorf("and is over:\n%s", s.lines())
		}
	})
}

// However many nodes fail, the state about them is bounded, and so is the number of nodes probed at
// a time.
func TestNodesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		for i := range maxNodes + 100 {
			s.fail(fmt.Sprint(i))
		}
		if n := s.Stats().Unavailable; n != maxNodes {
			t.Errorf("%d are unavailable", n)
		}
		s.well.Store(true)
		time.Sleep(time.Minute)
		if s.Any() {
			t.Errorf("%+v", s.Stats())
		}
		s.fail("new") // takes the place of one that is well
		if !s.Away(t.Context(), "new") || len(*s.nodes.Load()) > maxNodes {
			t.Errorf("%d nodes: %+v", len(*s.nodes.Load()), s.Stats())
		}
		for i := range maxNodes + 100 {
			s.Left(fmt.Sprint("left", i))
			s.Answered(fmt.Sprint("left", i-1), time.Now())
		}
		s.Answered(fmt.Sprint("left", maxNodes+99), time.Now())
		if len(*s.nodes.Load()) > maxNodes || s.Doubted() {
			t.Errorf("%d nodes, doubted %v", len(*s.nodes.Load()), s.Doubted())
		}
	})
}

func TestLateFailuresSayNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		began := time.Now()
		time.Sleep(time.Millisecond)
		s.fail("a")
		s.well.Store(true)
		time.Sleep(time.Second)
		s.Failed("a", began, errAway, "a")
		if s.Any() {
			t.Error("a call that began before the outage opened it again")
		}
	})
}

func TestCallersWhoLeave(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		for range maxLeft - 1 {
			if s.Left("a") {
				t.Fatal("too soon")
			}
		}
		s.Answered("b", time.Now())
		if !s.Left("a") {
			t.Fatal("nobody has an answer, and it does not count")
		}
		s.Answered("a", time.Now())
		if s.Left("a") || !s.Doubted() {
			t.Error("an answer was forgotten")
		}
	})
}

// One call without an answer opens no breaker, nor do others that were in flight by then. One that
// began after it does, unless the node has answered in between.
func TestOneTimeOutIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		timeOut := func(began time.Time) { s.TimedOut("a", began, errAway, "a") }
		early := time.Now()
		for range 3 {
			time.Sleep(30 * time.Millisecond)
			timeOut(early)
		}
		if s.Any() || !s.Doubted() {
			t.Fatalf("%+v", s.Stats())
		}
		leaves := 0
		for range maxWaiting + 1 {
			leave, ok := s.Admit("a")
			if !ok {
				continue
			}
			leaves++
			defer leave()
		}
		if _, ok := s.Admit("b"); leaves != maxWaiting || !ok {
			t.Errorf("%d calls may wait", leaves)
		}
		if !s.Answered("a", time.Now()) || s.Doubted() || s.Answered("a", time.Now()) {
			t.Error("an answer was forgotten")
		}
		time.Sleep(time.Millisecond)
		timeOut(time.Now())
		if s.Any() {
			t.Error("it had answered")
		}
		timeOut(time.Now())
		if !s.Any() || s.Doubted() {
			t.Error("it went on, and nothing opened")
		}
	})
}

// Without a Run, one caller makes a due probe, and the others do not wait.
func TestWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.fail("a")
		if !s.Away(t.Context(), "a") || s.Stats().Probes != 0 {
			t.Errorf("%+v", s.Stats())
		}
		time.Sleep(time.Second)
		for range 2 {
			if !s.Away(t.Context(), "a") || s.Stats().Probes != 1 {
				t.Errorf("%+v", s.Stats())
			}
		}
		s.well.Store(true)
		time.Sleep(time.Second)
		if s.Away(t.Context(), "a") {
			t.Errorf("%+v", s.Stats())
		}
	})
}

func BenchmarkAway(b *testing.B) {
	s := newService()
	for name, fails := range map[string]bool{"none": false, "another": true} {
		if fails {
			s.fail("a")
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.Away(b.Context(), "b")
			}
		})
	}
}

// A call without an answer means nothing if the node has answered one that began later.
func TestALostCallIsNoSilence(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		began := time.Now()
		time.Sleep(time.Millisecond)
		s.Answered("a", time.Now())
		s.TimedOut("a", began, errAway, "a")
		if s.Doubted() {
			t.Error("it was lost, and the node counts as silent")
		}
		s.TimedOut("a", time.Now(), errAway, "a")
		if !s.Doubted() {
			t.Error("a later one counts as lost")
		}
	})
}

// After an outage, others may be without the node for as long as between two of their probes.
func TestOthersRecoverLater(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		s.Settling = 50 * time.Millisecond
		s.fail("a")
		time.Sleep(time.Second)
		s.well.Store(true)
		for s.Any() {
			time.Sleep(time.Millisecond)
		}
		if left := s.Recovering("a"); left < time.Second || left > s.Max*5/4+s.Settling || s.Recovering("b") != 0 || s.Recovered() {
			t.Errorf("%v left for a, %v for b", left, s.Recovering("b"))
		}
		time.Sleep(3 * time.Second)
		if s.Recovering("a") != 0 || !s.Recovered() {
			t.Errorf("%v left", s.Recovering("a"))
		}
	})
}

// While all nodes answer, few answers are wanted. Once one is doubted, all are.
func TestFewAnswersAreWanted(t *testing.T) {
	bubble(t, func(t *testing.T, s *service) {
		wanted := 0
		for range 1000 {
			time.Sleep(wantEvery / 100)
			if s.Wants(time.Now()) {
				wanted++
			}
		}
		if wanted != 10 {
			t.Errorf("%d of 1000 answers in 10 intervals", wanted)
		}
		s.TimedOut("a", time.Now(), errAway, "a")
		if !s.Wants(time.Now()) || !s.Wants(time.Now()) {
			t.Error("a node is doubted, and an answer does not count")
		}
	})
}
