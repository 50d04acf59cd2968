package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of "go test -json" (see "go doc test2json" and, for the build
// events, "go help buildjson").
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build event
	Test       string // empty: the event is about the package
	Elapsed    float64
	Output     string
}

// summary turns events into text and totals. It is not safe for concurrent use.
type summary struct {
	out      io.Writer
	open     map[string]*pkg // packages without a result yet
	total    counts
	failures []string
	slowest  slowest
}

type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// pkg is a package under test.
type pkg struct {
	path   string
	counts counts
	output strings.Builder             // what belongs to no test
	tests  map[string]*strings.Builder // output of the tests without a result yet
	skips  []string
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, open: make(map[string]*pkg)}
}

// add takes the next event.
func (s *summary) add(e event) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(s.out, e.Output)
	case e.Package == "":
		// build-fail: the package that wanted the build fails as well, and counts
	case e.Test == "":
		s.addPackageEvent(s.pkg(e.Package), e)
	default:
		s.addTestEvent(s.pkg(e.Package), e)
	}
}

func (s *summary) pkg(path string) *pkg {
	p := s.open[path]
	if p == nil {
		p = &pkg{path: path, tests: make(map[string]*strings.Builder)}
		s.open[path] = p
	}
	return p
}

func (s *summary) addTestEvent(p *pkg, e event) {
	output := p.tests[e.Test]
	if output == nil {
		output = &strings.Builder{}
		p.tests[e.Test] = output
	}
	switch e.Action {
	case "output":
		if !isProgress(e.Output) {
			output.WriteString(e.Output)
		}
		return
	case "pass":
		p.counts.passed++
	case "skip":
		p.counts.skipped++
		p.skips = append(p.skips, fmt.Sprintf("%s: %s", e.Test, reason(output.String())))
	case "fail":
		s.failTest(p, e.Test, output.String())
	default: // run, pause, cont, bench
		return
	}
	s.slowest.add(p.path, e.Test, e.Elapsed)
	delete(p.tests, e.Test)
}

func (s *summary) failTest(p *pkg, test, output string) {
	p.counts.failed++
	s.failures = append(s.failures, p.path+" "+test)
	fmt.Fprintf(s.out, "\nFAIL  %s %s\n%s\n", p.path, test, output)
}

func (s *summary) addPackageEvent(p *pkg, e event) {
	switch e.Action {
	case "output":
		p.output.WriteString(e.Output)
	case "pass", "skip", "fail":
		s.endPackage(p, e.Action, fmt.Sprintf("%.2fs", e.Elapsed))
	}
}

// endPackage settles the account of a package. Tests without a result were cut
// short, by a panic or a timeout: they have failed. A package can also fail by
// itself: it does not build, or its TestMain says so.
func (s *summary) endPackage(p *pkg, result, elapsed string) {
	delete(s.open, p.path)
	for _, test := range slices.Sorted(maps.Keys(p.tests)) {
		s.failTest(p, test, p.tests[test].String()+"(ended without a result)\n")
		result = "fail"
	}
	if result == "fail" {
		if p.counts.failed == 0 {
			p.counts.failed++
			s.failures = append(s.failures, p.path)
		}
		fmt.Fprint(s.out, p.output.String())
	}
	s.total.passed += p.counts.passed
	s.total.failed += p.counts.failed
	s.total.skipped += p.counts.skipped

	switch {
	case result == "fail":
		fmt.Fprintf(s.out, "FAIL  %s  %s  %v\n", p.path, elapsed, p.counts)
	case p.counts == counts{}:
		fmt.Fprintf(s.out, "-     %s  no tests\n", p.path)
	default:
		fmt.Fprintf(s.out, "ok    %s  %s  %v\n", p.path, elapsed, p.counts)
	}
	for _, skip := range p.skips {
		fmt.Fprintf(s.out, "      skipped %s\n", skip)
	}
}

// endRun closes a run of go test in a directory, with the error that it ended with.
func (s *summary) endRun(dir string, err error) {
	for _, path := range slices.Sorted(maps.Keys(s.open)) {
		p := s.open[path]
		p.output.WriteString("(the package ended without a result)\n")
		s.endPackage(p, "fail", "-")
	}
	if err != nil && s.total.failed == 0 {
		s.fail(fmt.Sprintf("go test in %s: %v, though no test failed", dir, err))
	}
}

// join adds what came of another, whose runs have ended.
func (s *summary) join(o *summary) {
	s.total.passed += o.total.passed
	s.total.failed += o.total.failed
	s.total.skipped += o.total.skipped
	s.failures = append(s.failures, o.failures...)
	for _, t := range o.slowest {
		s.slowest.keep(t)
	}
}

// end prints the slowest tests, the failures and the totals, and reports whether all is well.
func (s *summary) end() bool {
	if s.total == (counts{}) {
		s.fail("no test ran")
	}
	s.slowest.print(s.out)
	if s.total.failed > 0 {
		fmt.Fprintf(s.out, "\nfailed:\n      %s\n\n", strings.Join(s.failures, "\n      "))
	}
	fmt.Fprintln(s.out, s.total)
	return s.total.failed == 0
}

func (s *summary) fail(what string) {
	s.total.failed++
	s.failures = append(s.failures, what)
}

// isProgress reports whether a line repeats what the events say.
func isProgress(line string) bool {
	return strings.HasPrefix(line, "=== ")
}

// reason is what a skipped test said, on one line.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--- SKIP") {
			said = append(said, line)
		}
	}
	if said == nil {
		return "no reason given"
	}
	return strings.Join(said, "; ")
}
