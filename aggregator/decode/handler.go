package decode

import (
	"time"
)

// Count is what one line says: rule number Rule of the rules saw the key with
// this text N times, at When or soon after.
type Count struct {
	Rule int
	Hash uint64 // hotparam.Hash of the text
	Text []byte
	N    int64
	When time.Time
	// Estimated tells that N is an estimate, made of samples: Seen of it were seen.
	Estimated bool
	Seen      int64
	// Instance is the sender's name, if its packet told.
	Instance string
	// InGroup tells whether a [HeldBack] has already added the count to the total of the
	// key's group.
	InGroup InGroup
}

// InGroup is whether a count has been told as held back of its group before.
type InGroup uint8

// Values of InGroup.
const (
	NotInGroup InGroup = iota
	MaybeInGroup
	SurelyInGroup
)

// Handler takes what a decoder finds in packets.
type Handler interface {
	// Count takes one count; its text is valid during the call only.
	Count(Count)
	// Hidden tells that counts of n in sum, of any keys, at when or soon after
	// will never come.
	Hidden(when time.Time, n int64)
	// Held tells what, by now, the collectors together hide of any key of a rule
	// by holding small counts back, over the rule's windows, and how much of that those
	// do who do not tell of groups what they hold back.
	Held(rule int, bound, untold int64)
	// HeldBack takes what is held back of a group.
	HeldBack(HeldBack)
	// Lost tells that packets of when or before went missing.
	Lost(when time.Time)
	// Found tells that packets that went missing came after all: those that are
	// missing still are of newest or before. Zero: none is missing.
	Found(newest time.Time)
	// Missing tells how much is missing where the sender tells what it had sent. A gap
	// is told again when less is missing.
	Missing(Gap)
	// Spare tells of a key that it had no count in a gap but on its account; known: nor
	// there one that was not counted.
	Spare(gap uint64, rule int, hash uint64, known bool)
	// Healed takes counts that were missing, and are of When or later, up to until.
	Healed(c Count, until time.Time)
	// Moved takes counts that were healed as of from, up to, and came after all.
	Moved(c Count, from, to time.Time)
}

// PacketHandler is a [Handler] that takes the counts of a packet together: then its Count is
// not called.
type PacketHandler interface {
	Handler
	// Counts takes counts that have the time and the instance in common; they and their
	// texts are valid during the call only.
	Counts([]Count)
}
