package graphitesource

import (
	"strings"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// names reads the names of series.
type names struct {
	before, after string // the counter's name
	encoding      wire.Encoding
	watches       map[string]int // by all of the counter's name but the key
}

func newNames(c *Config, watches []watch) names {
	n := names{encoding: c.Encoding, watches: make(map[string]int, len(watches))}
	n.before, n.after, _ = strings.Cut(c.Series, placeholder)
	for i := range watches {
		n.watches[watches[i].prefix] = i
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

// read gives the watch and the key of a series.
func (n *names) read(series string) (watch int, text []byte, why whyNot) {
	counter, ok := strings.CutPrefix(series, n.before)
	if ok {
		counter, ok = strings.CutSuffix(counter, n.after)
	}
	at := strings.LastIndexByte(counter, '.') + 1 // Graphite's components have none
	watch, known := n.watches[counter[:at]]
	if !ok || !known {
		return 0, nil, foreign
	}
	text, err := n.encoding.AppendDecoded(nil, []byte(counter[at:]))
	if err != nil || len(text) == 0 || len(text) > hotparam.MaxText {
		return 0, nil, badKey
	}
	return watch, text, isKey
}
