package accesslog

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Stats counts lines. Blank lines are neither good nor bad.
type Stats struct {
	Good, Bad int64
	BadLines  []BadLine // the first keptBad over all files
	Disorder  Disorder
}

// Disorder describes requests that were not passed on in the order of time because they came
// later than [Options.Reorder] allows. Files have none, since they are sorted.
type Disorder struct {
	Late int64         // number of late requests
	By   time.Duration // greatest delay of one of them behind the newest request
	Full bool          // the held-back requests had reached their bound of memory
}

// BadLine is a line that is not a request.
type BadLine struct {
	File    string // name of the file, or "standard input"
	Line    int64  // number of the line, from 1
	Reason  string
	Excerpt string // beginning of the line, at most 120 characters, with unprintable ones escaped
}

func newBadLine(file string, line int64, reason error, text []byte) BadLine {
	return BadLine{File: file, Line: line, Reason: reason.Error(), Excerpt: Excerpt(text)}
}

// lineCounts collects the counts for Stats. It is safe for concurrent use.
type lineCounts struct {
	good, bad atomic.Int64

	mu       sync.Mutex // guards the fields below
	lines    []BadLine
	disorder Disorder
}

func (t *lineCounts) addGood() { t.good.Add(1) }

// addBad counts a bad line, and keeps it while there is room.
func (t *lineCounts) addBad(file string, line int64, reason error, text []byte) {
	t.bad.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) < keptBad {
		t.lines = append(t.lines, newBadLine(file, line, reason, text))
	}
}

// addLate counts a request that came too late to be sorted.
func (t *lineCounts) addLate(delay time.Duration, full bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disorder.Late++
	t.disorder.By = max(t.disorder.By, delay)
	t.disorder.Full = full
}

func (t *lineCounts) stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{Good: t.good.Load(), Bad: t.bad.Load(), BadLines: slices.Clone(t.lines), Disorder: t.disorder}
}

// keptBad is the number of bad lines that are shown.
const keptBad = 5

const maxExcerpt = 120

// excerpt returns the beginning of a line, safe to print on a terminal: a log contains whatever
// clients sent.
func excerpt(text []byte) string {
	var out []byte
	for chars := 0; len(text) > 0; {
		r, size := utf8.DecodeRune(text)
		shown := text[:size]
		if r == utf8.RuneError && size == 1 || !strconv.IsPrint(r) {
			quoted := strconv.Quote(string(shown))
			shown = []byte(quoted[1 : len(quoted)-1])
		}
		chars += utf8.RuneCount(shown)
		if chars > maxExcerpt || chars == maxExcerpt && size < len(text) {
			return string(out) + "…"
		}
		out = append(out, shown...)
		text = text[size:]
	}
	return string(out)
}
