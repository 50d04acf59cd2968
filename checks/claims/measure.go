package claims

import "runtime"

// measure holds the measurements of a run that has the process to itself.
type measure struct {
	mallocs uint64 // allocations in the collectors' Add
	before  uint64
	memory  int64 // bytes that the detectors hold at the end; they never release any
}

// start and stop enclose code that must not allocate.
func (m *measure) start() { m.before = memory().Mallocs }
func (m *measure) stop()  { m.mallocs += memory().Mallocs - m.before }

func memory() (s runtime.MemStats) {
	runtime.ReadMemStats(&s)
	return s
}

// inUse returns the bytes of the heap that are in use.
func inUse() int64 {
	runtime.GC()
	return int64(memory().HeapAlloc)
}
