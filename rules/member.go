package rules

import "time"

// Member is what an instance or an aggregator says about itself in its heartbeats.
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
	// Offset is how far the member's clock is ahead of Redis's, if OffsetKnown.
	Offset      time.Duration
	OffsetKnown bool
	// Dropped is how much the member dropped itself in the last minute: counts of an instance,
	// lines and packets of an aggregator. Arrived is how many packets (or records of Kafka)
	// reached an aggregator in the last minute, and Lost how many were sent and did not.
	Dropped, Lost, Arrived int64
	// MemoryUsed and MemoryMax are in bytes. Zero means not known, or no bound.
	MemoryUsed, MemoryMax int64
	// Floor is the greatest count that a key without a counter of its own may have in a
	// window of an aggregator.
	Floor int64
	// Waiting is how many hot keys of an aggregator are limited nowhere, because its published
	// set is full.
	Waiting int64
	// Held is how many hot keys an instance holds without an aggregator's word, and HeldSince
	// since when, on its own clock.
	Held      int64
	HeldSince time.Time
	// Displaced is how many keys of an instance's limits found their tables full in the last
	// minute: see middleware's Stats.
	Displaced int64
	// Problem is what is wrong, such as a rules file that was refused, or empty.
	Problem string
}

// Role is what a [Member] does.
type Role string

// Roles of members.
const (
	RoleInstance   Role = "instance"
	RoleAggregator Role = "aggregator"
)
