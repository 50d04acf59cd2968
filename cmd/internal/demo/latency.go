package demo

import (
	"slices"
	"sync"
	"time"
)

// latencySpan is the time over which the current latency is taken.
const latencySpan = 2 * time.Second

// maxLatencies bounds the samples kept of a crowd: about as many requests as come in a minute.
const maxLatencies = 1 << 15

// Latency summarizes requests and their answers. The times are those of requests that were not
// refused.
type Latency struct {
	Percentiles
	Requests int     `json:"requests"`
	Failed   float64 `json:"failed_share"` // share of the requests that the database did not answer
	Refused  float64 `json:"refused_share"`
}

// Served returns the share of the requests that were answered with what they asked for.
func (l *Latency) Served() float64 { return max(0, 1-l.Failed-l.Refused) }

// latencies records requests of one kind and how long they took.
type latencies struct {
	mu     sync.Mutex
	recent []answerTime // answers within latencySpan
	crowd  []answerTime // answers during all crowds, without the first second of each
}

type answerTime struct {
	answered        time.Time
	took            time.Duration
	failed, refused bool
}

func (l *latencies) add(a answerTime, crowd bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recent) < maxLatencies {
		l.recent = append(l.recent, a)
	}
	if crowd && len(l.crowd) < maxLatencies {
		l.crowd = append(l.crowd, a)
	}
}

// recentLatency returns the latency over latencySpan.
func (l *latencies) recentLatency(now time.Time) Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent = slices.DeleteFunc(l.recent, func(a answerTime) bool { return now.Sub(a.answered) > latencySpan })
	return latencyOf(l.recent)
}

// ofCrowds returns the latency during all crowds.
func (l *latencies) ofCrowds() Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	return latencyOf(l.crowd)
}

func latencyOf(answers []answerTime) Latency {
	times := make([]time.Duration, 0, len(answers))
	failed, refused := 0, 0
	for _, a := range answers {
		if a.refused {
			refused++
			continue
		}
		times = append(times, a.took)
		if a.failed {
			failed++
		}
	}
	slices.Sort(times)
	l := Latency{Percentiles: Percentiles{P50: percentile(times, 50), P99: percentile(times, 99)}, Requests: len(answers)}
	if len(answers) > 0 {
		l.Failed, l.Refused = float64(failed)/float64(len(answers)), float64(refused)/float64(len(answers))
	}
	return l
}
