package daemon

import (
	"context"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/wire"
)

// source is a kind of source of counts. The file of each source declares one.
type source struct {
	open func(ctx context.Context, set *settings) (pipeline, error)
	// server is the name of the server that open contacts, or "" if there is none.
	server string
	// read describes where the aggregator takes counts from. sent describes how instances send
	// them.
	read, sent func(*config.File) string
}

// sources holds the source for each of [config.Sources].
var sources = map[string]source{
	config.SourceStatsD:   statsdWay,
	config.SourceKafka:    kafkaWay,
	config.SourceGraphite: graphiteWay,
}

// SourceWords describes where an aggregator takes counts from.
func SourceWords(f *config.File) string { return sources[f.Aggregator.WithDefaults().Source].read(f) }

// TransportWords describes how counts travel from instances to aggregators.
func TransportWords(f *config.File) string {
	if f.Aggregator.Source == config.SourceNone {
		return "none: only limits, without an aggregator"
	}
	return sources[f.Aggregator.WithDefaults().Source].sent(f)
}

// sentByStatsD describes how instances send counts by StatsD.
func sentByStatsD(f *config.File) string {
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
	return words + trustWords(f.Aggregator)
}

// trustWords describes which counts are accepted. It returns "" if all are.
func trustWords(a config.Aggregator) string {
	switch {
	case a.Trust == config.TrustSigned:
		return ", signed"
	case a.Trust == config.TrustListed:
		return fmt.Sprintf(", from %s listed", hotwords.Plural(len(a.Senders), "network"))
	case a.KeyFile+a.KeyEnv != "":
		return ", signed, which is optional"
	}
	return ""
}
