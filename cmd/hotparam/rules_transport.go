package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/graphitesource"
	"github.com/hotparam/hotparam/internal/wire"
)

// transportWords is how counts travel from instances to aggregators.
func transportWords(f *config.File) string {
	if f.Aggregator.Source == config.SourceNone {
		return "none: only limits, without an aggregator"
	}
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
		return words + trustWords(f.Aggregator)
	}
	words := statsdWords(f) + trustWords(f.Aggregator)
	if f.Aggregator.Source == config.SourceGraphite {
		words += "; " + sourceWords(f)
	}
	return words
}

// statsdWords is how instances send by StatsD.
func statsdWords(f *config.File) string {
	s := f.StatsD.WithDefaults(f.Aggregator)
	words := "StatsD to " + strings.Join(s.Addresses, ", ")
	switch {
	case len(s.Addresses) == 1:
	case s.Spread == config.SpreadAll:
		words += ", everything to each; one of them publishes"
	default:
		words += ", a part of the keys to each"
	}
	if s.Encoding != wire.Plain.String() {
		words += ", keys " + s.Encoding
	}
	if !*s.Meta {
		words += ", no meta lines"
	}
	return words
}

// sourceWords is where an aggregator takes counts from.
func sourceWords(f *config.File) string {
	switch f.Aggregator.Source {
	case config.SourceKafka:
		k := f.Kafka.WithDefaults()
		return fmt.Sprintf("Kafka topic %s at %s", cmp.Or(k.Topic, wire.DefaultTopic), strings.Join(k.Brokers, ", "))
	case config.SourceGraphite:
		return graphiteWords(f.Graphite.WithDefaults())
	}
	a := f.Aggregator.WithDefaults()
	words := "StatsD " + strings.Join(a.Listen, ", ")
	words += trustWords(a)
	if a.Readers > 1 {
		words += fmt.Sprintf(" by %d readers", a.Readers)
	}
	if e := f.StatsD.WithDefaults(a).Encoding; e != wire.Plain.String() {
		words += ", keys " + e
	}
	return words
}

// trustWords is whose counts are believed, if not everybody's.
func trustWords(a config.Aggregator) string {
	switch {
	case a.Trust == config.TrustSigned:
		return ", signed"
	case a.Trust == config.TrustListed:
		return fmt.Sprintf(", from %s listed", plural(len(a.Senders), "network"))
	case a.KeyFile+a.KeyEnv != "":
		return ", signed, which nobody has to be"
	}
	return ""
}

// graphiteWords is what Graphite is asked for, and when, and as whom.
func graphiteWords(g config.Graphite) string {
	series := cmp.Or(g.Series, graphitesource.DefaultSeries)
	if g.Rate {
		series += " (per second)"
	}
	words := fmt.Sprintf("Graphite at %s, asked %s for %s in steps of %v", g.URL, cmp.Or(g.Every, graphitesource.DefaultEvery), series, g.Step)
	switch {
	case g.User != "":
		words += ", as user " + g.User
	case g.TokenFile+g.TokenEnv != "":
		words += ", with a token"
	default:
		return words
	}
	if strings.HasPrefix(g.URL, "http:") {
		words += " in the clear"
	}
	return words
}
