package gateway

import (
	"container/list"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Defaults of a TicketsConfig.
const (
	defaultMaxTickets = 100_000
	defaultTicketAge  = time.Minute
)

// TicketsConfig configures [Tickets]. The zero value has the defaults.
type TicketsConfig struct {
	Max int           // maximum number of requests held; zero means defaultMaxTickets
	Age time.Duration // time after which a request expires; zero means defaultTicketAge
	Log *slog.Logger  // nil disables logging
}

// Tickets holds the tickets of in-flight requests until a later call reports their end. A
// request whose end is not reported within the age is ended without cost, which returns its
// permits. A request beyond the maximum is ended as well. A door must refuse it ([NoPlace]):
// otherwise, a client that fills the table would have no limit of cost or concurrency. Tickets
// is safe for concurrent use. A request takes about 200 bytes until its age has passed, even if
// it ends earlier.
type Tickets struct {
	config TicketsConfig
	lines  struct{ full, expired loglimit.Limit } // separate, so that neither silences the other

	mu        sync.Mutex            // guards the rest; not held while tickets are ended
	byID      map[ticketID][]*held  // oldest first; several if clients choose their own request ids
	byAge     list.List             // all held requests, oldest first
	ended     map[ticketID]struct{} // ids of requests that ended since the last rotation
	lastEnded map[ticketID]struct{} // ids of requests that ended in the period before
	rotateAt  time.Time             // time at which ended becomes lastEnded
	stats     TicketStats
	nowFunc   func() time.Time
}

// ticketID is the first half of the SHA-256 of an id. A gateway's ids have any length, and its
// clients may choose them.
type ticketID [16]byte

// held is one in-flight request.
type held struct {
	id      ticketID
	tickets []*middleware.Ticket
	since   time.Time
	place   *list.Element // its place in Tickets.byAge
}

// EndResult is the result of [Tickets.End].
type EndResult uint8

const (
	// Unknown means that no request with the id is held: the id was never held, it expired,
	// or the request passed without a ticket.
	Unknown EndResult = iota
	// Ended means that the request was ended and charged.
	Ended
	// Repeated means that the request had already ended. Nothing was charged.
	Repeated
)

// TicketStats are the counters of a [Tickets] since it was created.
type TicketStats struct {
	Held     int   // requests held now
	Ended    int64 // requests whose end was reported
	Repeated int64 // reports for requests that had already ended
	Unknown  int64 // reports for requests that are not held
	Expired  int64 // requests ended without cost after TicketsConfig.Age
	Full     int64 // requests ended at once, and refused: TicketsConfig.Max was reached
}

// NewTickets returns an empty Tickets. The caller must call Run.
func NewTickets(c TicketsConfig) *Tickets {
	if c.Max <= 0 {
		c.Max = defaultMaxTickets
	}
	if c.Age <= 0 {
		c.Age = defaultTicketAge
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Tickets{
		config: c, byID: make(map[ticketID][]*held), ended: make(map[ticketID]struct{}),
		lastEnded: make(map[ticketID]struct{}), nowFunc: time.Now,
	}
}

// NoPlace returns the decision on a request whose ticket could not be held.
func NoPlace() rules.Decision {
	return rules.Decision{Reason: rules.ReasonBusy, RetryAfter: time.Second}
}

// Hold holds a ticket and returns its id, 128 random bits, for [Tickets.End]. At the maximum it
// ends the ticket without cost and returns ok=false. A nil ticket is held too: End then returns
// Ended for its id.
func (t *Tickets) Hold(ticket *middleware.Ticket) (id string, ok bool) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	id = hex.EncodeToString(random[:])
	return id, t.HoldAs(id, ticket)
}

// HoldAs holds the tickets of one request under the gateway's id for the request. Several
// requests may have the same id; each End ends one of them, oldest first. At the maximum it ends
// the tickets without cost and returns false. It ignores nil tickets.
func (t *Tickets) HoldAs(id string, tickets ...*middleware.Ticket) (ok bool) {
	h := &held{id: idOf(id), tickets: tickets}
	for _, ticket := range tickets {
		if ticket.Metered() {
			ticket.Start()
		}
	}
	t.mu.Lock()
	if ok = t.byAge.Len() < t.config.Max; ok {
		t.add(h)
	} else {
		t.stats.Full++
	}
	t.mu.Unlock()
	if !ok {
		h.endTickets(middleware.Cost{})
		t.warn(&t.lines.full, "too many in-flight requests: new ones that count costs or hold permits are refused", "max_tickets", t.config.Max)
	}
	return ok
}

// End ends the oldest request with the id and charges its cost.
func (t *Tickets) End(id string, cost middleware.Cost) EndResult {
	key := idOf(id)
	t.mu.Lock()
	h := t.removeOldest(key)
	result := Unknown
	switch {
	case h != nil:
		result = Ended
		t.stats.Ended++
		t.recordEnded(key)
	case t.isEnded(key):
		result = Repeated
		t.stats.Repeated++
	default:
		t.stats.Unknown++
	}
	t.mu.Unlock()
	if h != nil {
		h.endTickets(cost)
	}
	return result
}

// Run ends requests that reach the age, until ctx is done. It then ends all requests, which
// returns their permits, and returns nil.
func (t *Tickets) Run(ctx context.Context) error {
	for range base.Ticks(ctx, max(time.Millisecond, min(time.Second, t.config.Age/8))) {
		if n := t.expire(t.nowFunc()); n > 0 {
			t.warn(&t.lines.expired, "the end of requests was not reported: they are ended without cost", "requests", n, "ticket_age", t.config.Age)
		}
	}
	t.expire(t.nowFunc().Add(1000 * t.config.Age))
	return nil
}

// Stats returns the counters.
func (t *Tickets) Stats() TicketStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Held = t.byAge.Len()
	return s
}

func idOf(id string) (key ticketID) {
	sum := sha256.Sum256([]byte(id))
	copy(key[:], sum[:])
	return key
}

// endTickets ends all tickets of the request with its full cost. Each ticket charges only the keys of
// its own rules.
func (h *held) endTickets(cost middleware.Cost) {
	for _, ticket := range h.tickets {
		ticket.End(cost)
	}
}

// add adds a request. The caller holds mu.
func (t *Tickets) add(h *held) {
	h.since = t.nowFunc()
	t.byID[h.id] = append(t.byID[h.id], h)
	h.place = t.byAge.PushBack(h)
}

// removeOldest removes and returns the oldest request with the id. It returns nil if there is none. The
// caller holds mu.
func (t *Tickets) removeOldest(key ticketID) *held {
	same := t.byID[key]
	if len(same) == 0 {
		return nil
	}
	h := same[0]
	if t.byID[key] = same[1:]; len(same) == 1 {
		delete(t.byID, key)
	}
	t.byAge.Remove(h.place)
	return h
}

// expire ends the requests that have reached the age at now, and returns their number.
func (t *Tickets) expire(now time.Time) (n int) {
	const batch = 256 // requests removed under one lock of mu
	for {
		var old []*held
		t.mu.Lock()
		for first := t.byAge.Front(); len(old) < batch && first != nil && now.Sub(first.Value.(*held).since) >= t.config.Age; first = t.byAge.Front() {
			old = append(old, t.removeOldest(first.Value.(*held).id))
			t.stats.Expired++
		}
		t.rotateEnded(now)
		t.mu.Unlock()
		for _, h := range old {
			h.endTickets(middleware.Cost{})
		}
		if n += len(old); len(old) < batch {
			return n
		}
	}
}

// recordEnded records the id of a request that has ended. The record is kept for at least the
// age, or less if more than Max requests end within it. The caller holds mu.
func (t *Tickets) recordEnded(key ticketID) {
	if len(t.ended) >= t.config.Max {
		t.rotateAt = time.Time{}
		t.rotateEnded(t.nowFunc())
	}
	t.ended[key] = struct{}{}
}

// rotateEnded drops the older generation of ended ids once per age. The caller holds mu.
func (t *Tickets) rotateEnded(now time.Time) {
	if now.Before(t.rotateAt) {
		return
	}
	clear(t.lastEnded)
	t.ended, t.lastEnded = t.lastEnded, t.ended
	t.rotateAt = now.Add(t.config.Age)
}

func (t *Tickets) isEnded(key ticketID) bool {
	if _, found := t.ended[key]; found {
		return true
	}
	_, found := t.lastEnded[key]
	return found
}

// warn logs a warning, at the rate of lines.
func (t *Tickets) warn(lines *loglimit.Limit, text string, args ...any) {
	lines.Warn(loglimit.LineRate{Burst: 2, Every: 30 * time.Second}, t.config.Log, text, args...)
}
