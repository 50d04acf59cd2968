package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/wire"
)

// transportWords is how counts travel from instances to aggregators.
func transportWords(f *config.File) string {
	if f.Aggregator.Source == config.SourceKafka {
		words := sourceWords(f) + ", acks=" + cmp.Or(f.Kafka.Acks, config.AcksOne)
		if f.Kafka.Idempotent {
			words += ", idempotent"
		}
		switch k := f.Kafka; {
		case k.SASL != nil && k.TLS != nil:
			words += ", TLS, SASL " + k.SASL.Mechanism
		case k.SASL != nil:
			words += ", SASL " + k.SASL.Mechanism + " in the clear"
		case k.TLS != nil:
			words += ", TLS"
		}
		return words
	}
	s := f.StatsD.WithDefaults(f.Aggregator)
	words := "StatsD to " + strings.Join(s.Addresses, ", ")
	switch {
	case len(s.Addresses) == 1:
	case s.Spread == config.SpreadAll:
		words += ", everything to each; one of them publishes"
	default:
		words += ", a part of the keys to each"
	}
	return words
}

// sourceWords is where an aggregator takes counts from.
func sourceWords(f *config.File) string {
	if f.Aggregator.Source != config.SourceKafka {
		return "StatsD " + f.Aggregator.Listen
	}
	k := f.Kafka.WithDefaults()
	return fmt.Sprintf("Kafka topic %s at %s", cmp.Or(k.Topic, wire.DefaultTopic), strings.Join(k.Brokers, ", "))
}
