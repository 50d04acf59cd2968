package chaos

import (
	"slices"
	"sync"
	"testing"
)

// scope is the lifetime of one run within a test or a command. Whatever is started in it ends
// with it. The output of its processes is not shown, however the test ends.
type scope struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
}

// Cleanup registers f to be called at the end of the run, in last-in, first-out order.
func (s *scope) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// Failed returns false, so that testenv does not log the output of each process.
func (s *scope) Failed() bool { return false }

func (s *scope) runCleanups() {
	s.mu.Lock()
	cleanups := s.cleanups
	s.cleanups = nil
	s.mu.Unlock()
	for _, cleanUp := range slices.Backward(cleanups) {
		cleanUp()
	}
}
