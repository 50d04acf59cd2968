// Package kafka has [hotparam.Open] send counts to Kafka where the file says so
// (aggregator: {source: kafka}). It is imported for its effect:
//
//	import _ "github.com/hotparam/hotparam/transport/kafka"
package kafka

import (
	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/config"
)

func init() { hotparam.Register(config.SourceKafka, open) }

func open(c hotparam.TransportConfig) (hotparam.Transport, error) {
	k := c.File.Kafka.WithDefaults()
	sink, err := kafkasink.New(kafkasink.Config{
		Rules: c.File.Rules, Connection: k.Connection, Topic: k.Topic, Instance: c.Instance,
		Acks: k.Acks, Idempotent: k.Idempotent, Compression: k.Compression, Buffer: k.Buffer, Log: c.Log, Key: c.Key,
	})
	if err != nil {
		return hotparam.Transport{}, err
	}
	return hotparam.Transport{
		Sink: sink, Check: sink.Check, Stats: func() any { return sink.Stats() },
		Dropped: func() map[string]int64 { return dropped(sink.Stats().Failed) },
	}, nil
}

// dropped returns the sums by the words of METRICS.md.
func dropped(f kafkasink.Failed) map[string]int64 {
	return map[string]int64{
		"buffer_full": f.BufferFull, "delivery": f.Delivery, "not_connected": f.NotConnected, "too_long": f.TooLong, "no_rule": f.NoRule,
	}
}
