package chaos

import (
	"slices"
	"sync"
	"testing"
)

// scope is the life of one run within a test or a command: what was started for it ends
// with it, and the output of its processes is not shown, however the test ends.
type scope struct {
	testing.TB
	mu    sync.Mutex
	undos []func()
}

// Cleanup has f called when the run is over, the last one first.
func (s *scope) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undos = append(s.undos, f)
}

// Failed returns false, so that testenv does not log what each process wrote.
func (s *scope) Failed() bool { return false }

// TempDir returns a directory that lives as long as the test, beyond the processes.
func (s *scope) TempDir() string { return s.TB.TempDir() }

func (s *scope) close() {
	s.mu.Lock()
	undos := s.undos
	s.undos = nil
	s.mu.Unlock()
	for _, undo := range slices.Backward(undos) {
		undo()
	}
}
