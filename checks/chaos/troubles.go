package chaos

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// troubles are the states that processes report of their Kafka clients. Until these are replaced,
// I2 requires nothing but the report.
type troubles struct {
	sources oracle.NamedTrouble // aggregators, by /-/ready
	sinks   oracle.NamedTrouble // instances, by the metrics of their sinks
}

func newTroubles() troubles {
	return troubles{
		sources: oracle.NamedTrouble{Enough: 1, Most: sourceReplaced},
		// The counts of all other instances still make the key hot.
		sinks: oracle.NamedTrouble{Enough: instances - (hotThreshold-1)/steadyRate, Most: sinkReplaced},
	}
}

// recordFault records that a fault of Kafka lasted up to now.
func (t *troubles) recordFault(now time.Duration) {
	t.sources.Fault(now)
	t.sinks.Fault(now)
}

// excuseTroubles excuses the consequences of reported troubles.
func (j *judge) excuseTroubles(now time.Duration) {
	if j.troubles.sources.Excuses(now, &j.stalls) || j.troubles.sinks.Excuses(now, &j.stalls) {
		for i := range instances {
			j.excuseHot(i, now)
		}
	}
	if !j.troubles.sources.Within(now, &j.stalls) {
		return
	}
	for _, l := range j.levels {
		if l.Invariant == oracle.I2 { // 503 is how an aggregator reports the trouble or a takeover
			l.Excuse(now)
		}
	}
}

// isTroubled reports whether a reported trouble excuses anything now.
func (j *judge) isTroubled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	return j.troubles.sources.Excuses(now, &j.stalls) || j.troubles.sinks.Excuses(now, &j.stalls)
}

// sampleSource records an aggregator's answer at /-/ready.
func (j *judge) sampleSource(name string, ready string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.troubles.sources.Sample(name, strings.Contains(ready, "partitions stand still") || strings.Contains(ready, "consumer group"))
}

// forgetTroubles drops the reports of a process that has ended.
func (j *judge) forgetTroubles(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.troubles.sources.Sample(name, false)
	j.troubles.sinks.Sample(name, false)
}

// sinkWatch is an instance's last report about its sink.
type sinkWatch struct {
	failed  int64
	waiting bool
}

// checkSink reads an instance's sink metrics. It records whether the sink has no connection, lost
// counts, or had undelivered records at this check and the last.
func (f *processFleet) checkSink(ctx context.Context, j *judge, client *http.Client, w *watched) {
	s, err := w.state(ctx, client, false)
	waits := s.Sink.Waiting > 0
	failed := s.Sink.Failed.BufferFull + s.Sink.Failed.Delivery + s.Sink.Failed.NotConnected
	troubled := err == nil && (!s.Sink.Connected || failed > w.sink.failed || waits && w.sink.waiting)
	w.sink = sinkWatch{failed, waits}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.troubles.sinks.Sample(w.name, troubled)
}
