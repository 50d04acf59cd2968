package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	mostSlow  = 15
	leastSlow = 1.0 // seconds
)

// slowest holds the tests that took longest, the longest first. A subtest counts as
// part of its test. The time that a parallel test waited for its turn does not count.
type slowest []timing

type timing struct {
	name    string
	seconds float64
}

func (s *slowest) add(path, test string, seconds float64) {
	if seconds < leastSlow || strings.Contains(test, "/") {
		return
	}
	s.keep(timing{path + " " + test, seconds})
}

func (s *slowest) keep(t timing) {
	*s = append(*s, t)
	slices.SortFunc(*s, func(a, b timing) int { return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name)) })
	*s = (*s)[:min(len(*s), mostSlow)]
}

func (s slowest) print(out io.Writer) {
	if len(s) == 0 {
		return
	}
	fmt.Fprint(out, "\nslowest tests:\n")
	for _, t := range s {
		fmt.Fprintf(out, "%8.1fs  %s\n", t.seconds, t.name)
	}
	fmt.Fprintln(out)
}
