package bench

import (
	"bytes"
	"strings"
	"testing"
)

func TestPipelineText(t *testing.T) {
	for _, c := range []struct {
		config PipelineConfig
		result PipelineResult
		want   []string
	}{
		{PipelineConfig{Transport: "statsd", Instances: 6}, PipelineResult{Events: 1000, Seconds: 10, EventsPerSecond: 100, Lost: 5},
			[]string{"over StatsD lines over UDP: 6 instances", "1,000 in 10.0 s, 100/s", "5 (0.500%)"}},
		{PipelineConfig{Transport: "kafka"}, PipelineResult{LagMS: 101.25, Probes: 600, Hot: 20}, []string{"Kafka, embedded", "101.2 ms", "p99 of 600", "20 keys", "nothing"}},
		{PipelineConfig{Transport: "kafka", Brokers: []string{"k1:9092", "k2:9092"}}, PipelineResult{Lost: -1000}, []string{"Kafka at k1:9092,k2:9092", "1,000 were counted twice"}},
	} {
		var out bytes.Buffer
		if err := c.result.WriteText(&out, &c.config); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, out.String())
			}
		}
	}
}

func TestGauge(t *testing.T) {
	for _, c := range []struct {
		value, most float64
		want        string
	}{{0, 10, ""}, {5, 0, ""}, {10, 10, strings.Repeat("█", gaugeWidth)}, {1, 1e9, "▏"}, {1, 80, "▌"}} {
		if got := gauge(c.value, c.most); got != c.want {
			t.Errorf("gauge(%v, %v) = %q, want %q", c.value, c.most, got, c.want)
		}
	}
	for v, want := range map[float64]string{12_345_678: "12.35 M", 45_678: "46 k", 12: "12"} {
		if got := metric(v); got != want {
			t.Errorf("metric(%v) = %q, want %q", v, got, want)
		}
	}
}
