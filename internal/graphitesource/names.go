package graphitesource

import (
	"strings"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// names reads the names of series.
type names struct {
	before, after string // the counter's name
	encoding      wire.Encoding
	watches       map[string]int // by all of the counter's name but the key
	canonical     []*rules.Canonicalizer
	believe       bool // keys are canonical
}

func newNames(c *Config, watches []watch) names {
	n := names{encoding: c.Encoding, watches: make(map[string]int, len(watches)), believe: c.Canonical}
	n.before, n.after, _ = strings.Cut(c.Series, placeholder)
	for i := range watches {
		n.watches[watches[i].prefix] = i
		n.canonical = append(n.canonical, rules.NewCanonicalizer(&c.Rules.Rules[watches[i].number]))
	}
	return n
}

// why a series has no key.
type whyNot uint8

const (
	isKey   whyNot = iota
	foreign        // of no rule
	badKey         // of a rule, but nothing that the encoding writes
)

// seriesName is a parsed name of a series.
type seriesName struct {
	watch int
	text  []byte // the key
	other string // the key as it stands in the name, if that is not the text's encoding
}

// read parses the name of a series. Its writer is unknown, so the key is always made
// canonical.
func (n *names) read(series string) (seriesName, whyNot) {
	counter, ok := strings.CutPrefix(series, n.before)
	if ok {
		counter, ok = strings.CutSuffix(counter, n.after)
	}
	at := strings.LastIndexByte(counter, '.') + 1 // Graphite's components have none
	watch, known := n.watches[counter[:at]]
	if !ok || !known {
		return seriesName{}, foreign
	}
	name := seriesName{watch: watch}
	var err error
	name.text, err = n.encoding.AppendDecoded(nil, []byte(counter[at:]))
	if err != nil || len(name.text) == 0 || len(name.text) > rules.MaxText {
		return seriesName{}, badKey
	}
	if n.believe {
		return name, isKey
	}
	if text, changed := n.canonical[watch].Append(nil, name.text); changed {
		name.text, name.other = n.encoding.Fit(text), strings.Clone(counter[at:])
	}
	return name, isKey
}
