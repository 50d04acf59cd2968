package demo

import (
	"slices"
	"sync"
	"time"
)

// latencySpan is the time that a present latency is taken over.
const latencySpan = 2 * time.Second

// maxLatencies bounds what is kept of a crowd: as many requests as come in a minute.
const maxLatencies = 1 << 15

// Latency is how requests fared that were not refused.
type Latency struct {
	Percentiles
	Requests int     `json:"requests"`
	Failed   float64 `json:"failed_share"` // part of them that the database did not answer
}

// latencies records how long requests for other companies than the crowd's took.
type latencies struct {
	mu     sync.Mutex
	recent []answer // of latencySpan
	crowd  []answer // of all crowds, the first second of each left out
}

type answer struct {
	at     time.Time
	took   time.Duration
	failed bool
}

func (l *latencies) add(a answer, crowd bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recent) < maxLatencies {
		l.recent = append(l.recent, a)
	}
	if crowd && len(l.crowd) < maxLatencies {
		l.crowd = append(l.crowd, a)
	}
}

// now is the latency of the last moments.
func (l *latencies) now(at time.Time) Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent = slices.DeleteFunc(l.recent, func(a answer) bool { return at.Sub(a.at) > latencySpan })
	return latencyOf(l.recent)
}

// ofCrowds is the latency while there were crowds.
func (l *latencies) ofCrowds() Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	return latencyOf(l.crowd)
}

func latencyOf(answers []answer) Latency {
	times := make([]time.Duration, len(answers))
	failed := 0
	for i, a := range answers {
		times[i] = a.took
		if a.failed {
			failed++
		}
	}
	slices.Sort(times)
	l := Latency{Percentiles: Percentiles{P50: percentile(times, 50), P99: percentile(times, 99)}, Requests: len(answers)}
	if len(answers) > 0 {
		l.Failed = float64(failed) / float64(len(answers))
	}
	return l
}
