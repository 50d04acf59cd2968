package e2e

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// lossPane is the width of the panes of the rules' windows, which have ten of them.
const lossPane = 100 * time.Millisecond

// lossRules have the kinds of threshold that a loss could hide keys from.
var lossRules = []restartRule{
	{"rate", []restartTerm{{kind: "rate", n: lossThreshold, window: time.Second}}, 0},
	{"share", []restartTerm{{kind: "share", n: 50, window: time.Second, part: 20}}, 0},
	{"jump", []restartTerm{{kind: "jump", n: 50, window: time.Second, part: 4}}, 0},
}

// lossThreshold is the count that makes a key of the rule rate hot.
const lossThreshold = 100

// lossKey is a key of known traffic.
type lossKey struct {
	rule, value string
	from, to    int64 // the panes with requests
	each        int64 // a pane, over all instances
	every       int64 // pane has some
	before      int64 // a pane before from
}

func (k *lossKey) path() string { return "/" + k.rule }

func (k *lossKey) member() string { return k.rule + " GET " + k.path() + "?q=" + k.value }

func (k *lossKey) requests(pane int64) int64 {
	switch {
	case pane >= k.to || pane%k.every != 0:
		return 0
	case pane < k.from:
		return k.before
	}
	return k.each
}

// lossPlan is the traffic of all instances together, over so many panes. Each process makes the
// same plan, and does its part.
type lossPlan struct {
	rules []restartRule
	panes int64
	keys  []lossKey
}

// add adds a key.
func (p *lossPlan) add(k lossKey) {
	k.every = max(k.every, 1)
	p.keys = append(p.keys, k)
}

// paths returns the paths of the keys' routes.
func (p *lossPlan) paths() []string {
	all := make(map[string]bool)
	for i := range p.keys {
		all[p.keys[i].path()] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// numbers returns the numbers of the keys by their members.
func (p *lossPlan) numbers() map[string]int {
	all := make(map[string]int)
	for i := range p.keys {
		all[p.keys[i].member()] = i
	}
	return all
}

func newLossPlan(panes int64) *lossPlan {
	p := &lossPlan{rules: lossRules, panes: panes}
	steady := panes - 50
	for i := range int64(4) {
		p.add(lossKey{rule: "rate", value: fmt.Sprint("steady", i), from: 10 + i, to: steady, each: 15})
		p.add(lossKey{rule: "rate", value: fmt.Sprint("double", i), from: 10 + i, to: steady, each: 20})
		p.add(lossKey{rule: "rate", value: fmt.Sprint("near", i), from: 12 + i, to: steady, each: 11})
		p.add(lossKey{rule: "rate", value: fmt.Sprint("below", i), to: panes, each: 9})
	}
	for at := int64(20); at+20 < steady; at += 10 {
		p.add(lossKey{rule: "rate", value: fmt.Sprint("burst", at), from: at, to: at + 4, each: 35})
	}
	for i := range int64(150) { // the long tail
		p.add(lossKey{rule: "rate", value: fmt.Sprint("tail", i), to: panes, each: 1, every: 7 + i%7})
	}
	p.add(lossKey{rule: "share", value: "star", from: 20, to: steady, each: 6})
	p.add(lossKey{rule: "share", value: "second", to: panes, each: 3})
	for i := range int64(70) {
		p.add(lossKey{rule: "share", value: fmt.Sprint("other", i), to: panes, each: 1, every: 5})
	}
	for i := range int64(6) {
		p.add(lossKey{rule: "jump", value: fmt.Sprint("jump", i), from: steady - 15, to: steady, each: 8, before: 1})
	}
	return p
}

// A request comes in the later part of a pane. A flush counts requests between a pane's end and
// the flush itself for the pane before. So while flushes are in time, no count may belong to two
// panes.
const lossQuiet, lossBusy = 40 * time.Millisecond, 50 * time.Millisecond

// lossRequest is a request of a pane, with its time since the pane's beginning.
type lossRequest struct {
	after time.Duration
	key   int
}

// part returns the requests that one of the instances sends in a pane, in no order.
func (p *lossPlan) part(pane int64, instance, instances int) (requests []lossRequest) {
	for key := range p.keys {
		for n := range p.keys[key].requests(pane) {
			h := uint64(key)<<40 ^ uint64(pane)<<16 ^ uint64(n)
			h *= 0x9e3779b97f4a7c15
			h ^= h >> 29
			h *= 0xbf58476d1ce4e5b9
			h ^= h >> 32
			if int(h%uint64(instances)) == instance {
				requests = append(requests, lossRequest{lossQuiet + time.Duration(h>>20)%lossBusy, key})
			}
		}
	}
	return requests
}
