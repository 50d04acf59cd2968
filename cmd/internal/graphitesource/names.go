package graphitesource

import (
	"strings"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// names parses the names of series.
type names struct {
	before, after string // parts of a series' name around the counter's name
	encoding      wire.Encoding
	watches       map[string]int // watches by the counter's name without the key
	canonical     []*keytext.Canonicalizer
	believe       bool // keys are canonical already
}

func newNames(c *Config, watches []watch) names {
	n := names{encoding: c.Encoding, watches: make(map[string]int, len(watches)), believe: c.Canonical}
	n.before, n.after, _ = strings.Cut(c.Series, placeholder)
	for i := range watches {
		n.watches[watches[i].prefix] = i
		n.canonical = append(n.canonical, keytext.NewCanonicalizer(&c.Rules.Rules[watches[i].number]))
	}
	return n
}

// whyNot is the reason why a series has no key.
type whyNot uint8

const (
	isKey   whyNot = iota
	foreign        // the series is of no rule
	badKey         // the series is of a rule, but its key is not in the encoding
)

// seriesName is the parsed name of a series.
type seriesName struct {
	watch int
	text  []byte // the key
	other string // the key as written in the name, if that differs from the encoded text
}

// read parses the name of a series. The key is made canonical unless all keys are canonical,
// since the writer is unknown.
func (n *names) read(series string) (seriesName, whyNot) {
	counter, ok := strings.CutPrefix(series, n.before)
	if ok {
		counter, ok = strings.CutSuffix(counter, n.after)
	}
	begin := strings.LastIndexByte(counter, '.') + 1 // Graphite's components have none
	watch, known := n.watches[counter[:begin]]
	if !ok || !known {
		return seriesName{}, foreign
	}
	name := seriesName{watch: watch}
	var err error
	name.text, err = n.encoding.AppendDecoded(nil, []byte(counter[begin:]))
	if err != nil || len(name.text) == 0 || len(name.text) > rules.MaxText {
		return seriesName{}, badKey
	}
	if n.believe {
		return name, isKey
	}
	if text, changed := n.canonical[watch].Append(nil, name.text); changed {
		name.text, name.other = n.encoding.Fit(text), strings.Clone(counter[begin:])
	}
	return name, isKey
}
