package explain

import (
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// RulesOf returns ruleset with the settings of a file that affect the form of keys.
func RulesOf(file *config.File, ruleset *rules.Rules) Rules {
	r := Rules{Rules: ruleset, LimitWords: hotwords.Limit}
	encoding, err := wire.ParseEncoding(file.StatsD.WithDefaults(file.Aggregator).Encoding)
	if source := file.Aggregator.Source; err == nil && source != config.SourceKafka && source != config.SourceNone {
		r.Fit = encoding.Fit
	}
	return r
}
