package oracle

import (
	"fmt"
	"time"
)

// Forever is the end of a span that has not ended.
const Forever = time.Duration(1<<63 - 1)

// Span is a closed interval of the run.
type Span struct{ From, To time.Duration }

// overlap returns the length of the overlap of the two spans and whether they share an instant.
func (s Span) overlap(t Span) (time.Duration, bool) {
	d := min(s.To, t.To) - max(s.From, t.From)
	return max(d, 0), d >= 0
}

// The invariants of docs/DESIGN.md.
const (
	I1 = "I1: a key's admissions are at most what the largest quota in force allows"
	I2 = "I2: a hot key is published and limited in time"
	I3 = "I3: an error concerns its operation alone, and after it Redis decides again"
	I4 = "I4: logs, connections and answers are bounded, and no request fails because of us"
	I5 = "I5: an answer from memory is one that the handler would give, but for its age"
)

// Violation is an invariant that was certainly broken.
type Violation struct {
	At        time.Duration // time at which it was certain
	Invariant string        // I1 to I5
	Subject   string        // the key or process
	Text      string        // the numbers
}

func (v Violation) String() string {
	return fmt.Sprintf("%7.2fs %s\n         %s: %s", v.At.Seconds(), v.Invariant, v.Subject, v.Text)
}
