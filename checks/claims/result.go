package claims

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/aggregator"
)

// Result is the outcome of a run.
type Result struct {
	Events int64
	Must   int   // keys that reached a threshold, by rule and key
	Hot    int   // keys that were hot
	Judged int64 // bounds that were checked against the truth
	// Windows counts the windows of watched keys while they are listed. Vague counts the windows
	// among them whose bounds are unknown or apart by more than a tenth of the threshold.
	Windows, Vague int64
	// LastCool is the time at which the last key cooled, in ns since the Unix epoch.
	LastCool  int64
	Broken    [claims]int64
	Examples  []string // examples of violations
	FloorMost int64
	Memory    int64 // bytes that the detectors held at the end, if measured
	Exact     bool  // no budget was reached and nothing was lost
	Took      time.Duration
}

// Violations returns the number of violations of all claims.
func (r *Result) Violations() int64 {
	sum := int64(0)
	for _, n := range r.Broken {
		sum += n
	}
	return sum
}

// String describes the violations.
func (r *Result) String() string {
	var b strings.Builder
	for c, n := range r.Broken {
		if n > 0 {
			fmt.Fprintf(&b, "%v: %d; ", Claim(c), n)
		}
	}
	b.WriteString(strings.Join(r.Examples, "\n"))
	return b.String()
}

// checkExact records whether a budget is reached now or something is lost.
func (r *run) checkExact() {
	if !r.exact {
		return
	}
	r.exact = r.Network.Most < lag && r.net.lost == 0
	for _, d := range r.parts {
		s := d.Stats()
		r.exact = r.exact && s.Floor == 0 && s.Evicted == 0
	}
}

// leastMemory is the least that an aggregator asks for. With less, there may be no room for the
// names of all hot keys.
const leastMemory = aggregator.MinMemory

func (r *run) isCrowded() bool {
	if r.Memory >= leastMemory {
		return false
	}
	for _, d := range r.parts {
		if d.Stats().NoRoom > 0 {
			return true
		}
	}
	return false
}

// floor returns the most that can be hidden of any key of a rule.
func (r *run) floor(rule int) int64 {
	floor := int64(0)
	for _, d := range r.parts {
		floor = max(floor, d.Floor(rule))
	}
	return floor
}

// checkSums checks that the sums of counts and packets agree.
func (r *run) checkSums() {
	var sent, kept, late int64
	for _, c := range r.collectors {
		s := c.Stats()
		sent += s.Counts
		kept += s.Dropped.Sum() + s.Aged + s.Unsent
	}
	for _, d := range r.parts {
		late += d.Stats().Late
	}
	if sent+kept != r.sumOverRules {
		r.judge.recordViolation(Uncounted, nil, 0, "%d came, %d were sent and %d dropped or held back by the collectors", r.sumOverRules, sent, kept)
	}
	s := r.decoder.Stats()
	if r.counted+s.Retold+r.net.mass.lost+r.net.mass.refused != sent {
		r.judge.recordViolation(Uncounted, nil, 0, "%d were sent, %d arrived, %d were lost and %d refused", sent, r.counted, r.net.mass.lost, r.net.mass.refused)
	}
	if s.Healed-s.Retold > r.net.mass.lost+r.net.mass.refused {
		r.judge.recordViolation(Uncounted, nil, 0, "%d were lost and %d refused: %d were made up for, of which %d came after all", r.net.mass.lost, r.net.mass.refused, s.Healed, s.Retold)
	}
	if s.Malformed+s.Foreign+s.NotCounter+s.Negative+s.BadKey+s.NoRule > 0 {
		r.judge.recordViolation(Uncounted, nil, 0, "lines that are no counts: %+v", s)
	}
	flying := int64(len(r.net.flight)) // some packets carry only accounts, and do so to the end
	if again := r.net.doubled + r.refused - s.Duplicates; again < 0 || again > flying || s.LostPackets-s.Recovered > r.net.lost+r.refused+flying {
		r.judge.recordViolation(Uncounted, nil, 0, "%d packets doubled, %d lost, %d refused: told are %d, and %d less %d", r.net.doubled, r.net.lost, r.refused, s.Duplicates, s.LostPackets, s.Recovered)
	}
	// Counts that were held back can be older than the window and the grace.
	if late > r.clocks.lateCounts*int64(len(r.Rules)) && r.Network.Most < grace && r.Lines == 0 {
		r.judge.recordViolation(Uncounted, nil, 0, "%d came late, though all came within the grace", late)
	}
}

// memoryFactor is the factor by which the detectors may exceed their budget: for maps, slices
// that grow, and the hot keys' own memory.
const memoryFactor = 1.25

// checkMemory judges the memory and allocations of the detectors and the collectors.
func (r *run) checkMemory() {
	if !r.Measure {
		return
	}
	if each := float64(r.measure.mallocs) / float64(r.sumOverRules); each > 0.001 {
		r.judge.recordViolation(OverBudget, nil, 0, "%.4f allocations for each count", each)
	}
	full := inUse()
	r.parts = nil
	r.measure.memory = full - inUse()
	if limit := int64(memoryFactor * float64(r.Memory)); r.measure.memory > limit {
		r.judge.recordViolation(OverBudget, nil, 0, "the detectors hold %d bytes, their budget is %d", r.measure.memory, r.Memory)
	}
}

// checkDeadline judges the time at which the last key became hot.
func (r *run) checkDeadline() {
	from, _ := r.stream.Span()
	if took := time.Duration(r.judge.lastFirst - from); r.Within > 0 && took > r.Within {
		r.judge.recordViolation(TooSlow, nil, 0, "the last key became hot after %v", took)
	}
}

func (r *run) result() Result {
	j := r.judge
	result := Result{
		Events: r.sum, Windows: r.judge.windows, Vague: r.judge.vague, LastCool: r.judge.lastCool, Judged: j.judged,
		FloorMost: j.floorMost, Exact: r.exact,
	}
	for _, rule := range j.rules {
		result.Must += len(rule.dueHot)
		result.Hot += len(rule.states)
	}
	r.checkMemory()
	result.Memory, result.Broken, result.Examples = r.measure.memory, j.broken, j.examples
	return result
}
