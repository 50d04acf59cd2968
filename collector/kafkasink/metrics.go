package kafkasink

import "github.com/rcrowley/go-metrics"

// silent is a registry of metrics that measure nothing. Sarama's own metrics cost more
// than the rest of its work on small records, and start a goroutine.
type silent struct{ metrics.Registry }

func newSilent() metrics.Registry { return silent{metrics.NewRegistry()} }

// GetOrRegister returns a metric that measures nothing.
func (s silent) GetOrRegister(name string, metric any) any {
	switch metric.(type) {
	case func() metrics.Counter:
		return metrics.NilCounter{}
	case func() metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Meter:
		return metrics.NilMeter{}
	}
	return s.Registry.GetOrRegister(name, metric)
}
