package rules

import (
	"cmp"
	"time"
)

// Member is the state that an instance or an aggregator reports in its heartbeats.
type Member struct {
	Name string
	Role Role
	// RulesVersion is the version of the rules that are in force.
	RulesVersion string
	// Program is the program's version, or empty if it is not known.
	Program string
	Started time.Time
	// Heard is when the last heartbeat came. It is set by the reader.
	Heard time.Time
	// Offset is how far the member's clock is ahead of Redis's. It is valid if OffsetKnown is
	// true.
	Offset      time.Duration
	OffsetKnown bool
	// Dropped counts what the member dropped in the last minute: counts of an instance, or lines
	// and packets of an aggregator. Arrived is the number of packets, or records of Kafka, that
	// reached an aggregator in the last minute. Lost is the number that was sent and did not.
	Dropped, Lost, Arrived int64
	// MemoryUsed and MemoryMax are in bytes. Zero means not known, or no bound.
	MemoryUsed, MemoryMax int64
	// Floor is the greatest count that a key without a counter of its own may have in a
	// window of an aggregator.
	Floor int64
	// Waiting is the number of hot keys of an aggregator that are limited nowhere, because its
	// published set is full.
	Waiting int64
	// Held is the number of hot keys that an instance holds without confirmation by an
	// aggregator. HeldSince is the start of that time, on the instance's own clock.
	Held      int64
	HeldSince time.Time
	// Displaced is the number of keys of an instance's limits that found their tables full in the
	// last minute: see middleware's Stats.
	Displaced int64
	// Admitted are the admissions of hot keys by an instance in the last seconds, the highest
	// numbers first. MoreAdmitted reports whether keys are missing.
	Admitted     []Admitted
	MoreAdmitted bool
	// Left reports whether the member has ended. Its Admitted are its last.
	Left bool
	// Incarnation identifies this start of the process. It is set by the reader.
	Incarnation string
	// Problem describes a problem of the member, such as a rules file that was refused. It is
	// empty if there is none.
	Problem string
}

// Admitted is the number of admissions of a hot key by the limits of an instance.
type Admitted struct {
	// ID identifies the key without revealing it.
	ID uint64
	// N is the number of requests, or of bytes, milliseconds or units, that were admitted in the
	// last Span.
	N    int64
	Span time.Duration
	// OnHot counts the requests in the same Span that on_hot concerned.
	OnHot OnHotCounts
	// Lately are the outcomes in the same Span, and Outcomes those since the key became hot, which
	// was at Since.
	Lately, Outcomes Outcomes
	Since            time.Time
}

// Outcomes count requests of a hot key by what became of them.
type Outcomes struct {
	Passed  int64 // by the key's limit, or without asking it
	Refused int64 // by the key's limit; in shadow mode they passed all the same
	Waited  int64 // part of Passed: after a wait
	Served  int64 // in neither of them: answered by on_hot, so the limit was not asked
}

// Requests returns the number of all requests.
func (o Outcomes) Requests() int64 { return o.Passed + o.Refused + o.Served }

// Plus returns the sum of both.
func (o Outcomes) Plus(p Outcomes) Outcomes {
	return Outcomes{o.Passed + p.Passed, o.Refused + p.Refused, o.Waited + p.Waited, o.Served + p.Served}
}

// Minus returns what o has more than p: each count is at least zero.
func (o Outcomes) Minus(p Outcomes) Outcomes {
	return Outcomes{max(0, o.Passed-p.Passed), max(0, o.Refused-p.Refused), max(0, o.Waited-p.Waited), max(0, o.Served-p.Served)}
}

// OnHotCounts count the requests of a hot key whose rule has on_hot. It leaves out those that ran
// the handler for others.
type OnHotCounts struct {
	Stored, Joined int64 // answered from memory, and by the answer to an identical request under way
	Alone          int64 // not for sharing: answered as without on_hot
	// AloneFor is the reason of the last request in Alone, in one word with hyphens, such as
	// "set-cookie". It is empty if there was none.
	AloneFor string
}

// Compare orders the highest number of admissions first, then the most answers without one.
func (a Admitted) Compare(b Admitted) int {
	return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(b.OnHot.Stored+b.OnHot.Joined, a.OnHot.Stored+a.OnHot.Joined), cmp.Compare(a.ID, b.ID))
}

// Role is what a [Member] does.
type Role string

// Roles of members.
const (
	RoleInstance   Role = "instance"
	RoleAggregator Role = "aggregator"
)
