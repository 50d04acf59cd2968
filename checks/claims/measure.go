package claims

import "runtime"

// measure is what a run that has the process to itself needs of it.
type measure struct {
	mallocs uint64 // of the collectors' Add
	before  uint64
	memory  int64 // bytes that the detectors hold in the end: they give none back
}

// start and stop are around what may not allocate.
func (m *measure) start() { m.before = memory().Mallocs }
func (m *measure) stop()  { m.mallocs += memory().Mallocs - m.before }

func memory() (s runtime.MemStats) {
	runtime.ReadMemStats(&s)
	return s
}

// inUse is how many bytes are in use.
func inUse() int64 {
	runtime.GC()
	return int64(memory().HeapAlloc)
}
