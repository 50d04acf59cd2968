package chaos

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// troubles are what processes say of their clients of Kafka. Until these are replaced,
// I2 asks no more than that.
type troubles struct {
	sources oracle.Named // aggregators, at /-/ready
	sinks   oracle.Named // instances, by the metrics of their sinks
}

func newTroubles() troubles {
	return troubles{
		sources: oracle.Named{Enough: 1, Most: sourceReplaced},
		// The counts of all others still make the key hot.
		sinks: oracle.Named{Enough: instances - (hotThreshold-1)/steadyRate, Most: sinkReplaced},
	}
}

// fault says that up to now there was a fault of Kafka.
func (t *troubles) fault(now time.Duration) {
	t.sources.Fault(now)
	t.sinks.Fault(now)
}

// excuseTroubles excuses what processes name.
func (j *judge) excuseTroubles(now time.Duration) {
	if j.troubles.sources.Excuses(now, &j.stalls) || j.troubles.sinks.Excuses(now, &j.stalls) {
		for i := range j.hot {
			j.hot[i].Excuse(now)
		}
	}
	if !j.troubles.sources.Within(now, &j.stalls) {
		return
	}
	for _, l := range j.levels {
		if l.Invariant == oracle.I2 { // 503 is how an aggregator names it, or that another took over
			l.Excuse(now)
		}
	}
}

// isTroubled reports whether anything is excused by what processes name.
func (j *judge) isTroubled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	return j.troubles.sources.Excuses(now, &j.stalls) || j.troubles.sinks.Excuses(now, &j.stalls)
}

// sampleSource records what an aggregator says at /-/ready.
func (j *judge) sampleSource(name string, ready string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.troubles.sources.Sample(name, strings.Contains(ready, "partitions stand still") || strings.Contains(ready, "consumer group"))
}

// forgetTroubles forgets what a process said that has ended.
func (j *judge) forgetTroubles(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.troubles.sources.Sample(name, false)
	j.troubles.sinks.Sample(name, false)
}

// sinkWatch is what an instance said of its sink last.
type sinkWatch struct {
	failed  int64
	waiting bool
}

// checkSink asks an instance for its sink's metrics: whether it lacks the brokers, has
// lost counts, or has had records all the time that it could not deliver.
func (f *fleet) checkSink(ctx context.Context, j *judge, client *http.Client, w *watched) {
	s, err := w.state(ctx, client, false)
	waits := s.Sink.Waiting > 0
	failed := s.Sink.Failed.BufferFull + s.Sink.Failed.Delivery + s.Sink.Failed.NotConnected
	troubled := err == nil && (!s.Sink.Connected || failed > w.sink.failed || waits && w.sink.waiting)
	w.sink = sinkWatch{failed, waits}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.troubles.sinks.Sample(w.name, troubled)
}
