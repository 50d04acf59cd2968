package collector

import (
	"context"
	"time"
)

// Count is one key's count of one flush: the rule's id, the key's canonical
// text, and how often it came. The bytes are valid during the call only.
type Count struct {
	Rule []byte
	Text []byte
	N    int64
}

// Flush is what one flush has to say besides its counts.
type Flush struct {
	// Start is the first instant that the counts can be of.
	Start time.Time
	// Held is h: each key's unsent count is below it.
	Held int64
	// Unsent is the mass that was dropped since the last flush.
	Unsent int64
}

// Sink is where counts go. The collector calls it from one goroutine.
type Sink interface {
	// Send sends one flush. It returns how many counts (the sum of their N) it
	// could not send, by reason; it must not wait for long, and keeps nothing.
	Send(ctx context.Context, flush Flush, counts []Count) Sent
	// Fit shortens a text that is too long for the sink, so that it keeps its
	// identity; one that fits is returned as it is. It is called by any
	// goroutine, and may change the text in place.
	Fit(text []byte) []byte
	// Close releases what the sink holds.
	Close() error
}

// Sent tells what became of a flush.
type Sent struct {
	Lines, Packets int64
	// TooLong and Failed are the sums of counts whose line fits no packet, and
	// whose packet could not be sent; Err is the last error of the latter.
	TooLong, Failed int64
	Err             error
}
