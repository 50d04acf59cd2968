package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/middleware"
)

// Defaults of a [TicketsConfig].
const (
	DefaultMaxTickets = 100_000
	DefaultTicketAge  = time.Minute
)

// TicketsConfig configures [Tickets]. The zero value has the defaults.
type TicketsConfig struct {
	Max int           // how many requests are held; 0: DefaultMaxTickets
	Age time.Duration // after which a request is taken to be over; 0: DefaultTicketAge
	Log *slog.Logger  // nil: nothing is logged
}

// Tickets holds the tickets of requests whose end another call tells. A request whose end
// nobody tells within the age, or for which there is no room, is ended without cost, so that
// it gives back its permits. Tickets is safe for concurrent use. A request takes about 200 bytes
// until its age is over, ended or not.
type Tickets struct {
	config TicketsConfig
	lines  struct{ full, expired loglimit.Limit } // neither silences the other

	mu      sync.Mutex // guards the rest; not held while tickets are ended
	byID    map[ticketID]*heldRequests
	oldest  *held // the list of all that are held, by age
	newest  *held
	live    int
	ended   map[ticketID]struct{} // ids of requests that ended in this span of Age
	former  map[ticketID]struct{} // and in the one before
	turnAt  time.Time             // when ended becomes former
	stats   TicketStats
	nowFunc func() time.Time
}

// ticketID is the beginning of an id's SHA-256: ids of gateways are of any length, and may be
// their clients'.
type ticketID [16]byte

// held is one request.
type held struct {
	id      ticketID
	tickets []*middleware.Ticket
	since   time.Time

	older, newer *held // in the list of all
}

// heldRequests are the requests of one id, the oldest first. A client that chooses its own
// request id may have several.
type heldRequests struct{ list []*held }

// EndResult is what came of an end that was told.
type EndResult uint8

const (
	// Unknown means that there is no such request: there never was, it is too old, or it
	// passed without a ticket.
	Unknown EndResult = iota
	// Ended means that the request has been ended and charged.
	Ended
	// Repeated means that the request was ended before, and nothing was charged.
	Repeated
)

// TicketStats are the counters of [Tickets] since they were made.
type TicketStats struct {
	Held     int   // requests that are held now
	Ended    int64 // requests whose end was told
	Repeated int64 // ends that were told again
	Unknown  int64 // ends of requests that are not held
	Expired  int64 // requests that were ended without cost, as their end was not told in time
	Full     int64 // requests that were ended without cost at once, for want of room
}

// NewTickets returns an empty Tickets. Its Run must be called.
func NewTickets(c TicketsConfig) *Tickets {
	if c.Max <= 0 {
		c.Max = DefaultMaxTickets
	}
	if c.Age <= 0 {
		c.Age = DefaultTicketAge
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Tickets{
		config: c, byID: make(map[ticketID]*heldRequests), ended: make(map[ticketID]struct{}),
		former: make(map[ticketID]struct{}), nowFunc: time.Now,
	}
}

// Hold holds a ticket and returns an id of 128 random bits by which to end it. If there is no
// room, the ticket is ended without cost, and ok is false. A nil ticket is held as well: its
// end says that the id is known.
func (t *Tickets) Hold(ticket *middleware.Ticket) (id string, ok bool) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // which never fails
	id = hex.EncodeToString(random[:])
	return id, t.HoldAs(id, ticket)
}

// HoldAs holds the tickets of one request under a gateway's id for it. Several requests may
// have one id; each End ends one of them, the oldest first. If there is no room, the tickets
// are ended without cost, and HoldAs returns false. nil tickets are left out.
func (t *Tickets) HoldAs(id string, tickets ...*middleware.Ticket) (ok bool) {
	h := &held{id: idOf(id), tickets: tickets}
	t.mu.Lock()
	if ok = t.live < t.config.Max; ok {
		t.add(h)
	} else {
		t.stats.Full++
	}
	t.mu.Unlock()
	if !ok {
		h.end(middleware.Cost{})
		t.warn(&t.lines.full, "there is no room for more requests in flight: their costs are not charged", "max_tickets", t.config.Max)
	}
	return ok
}

// End ends the oldest request with this id, and charges it.
func (t *Tickets) End(id string, cost middleware.Cost) EndResult {
	key := idOf(id)
	t.mu.Lock()
	h := t.take(key)
	result := Unknown
	switch {
	case h != nil:
		result = Ended
		t.stats.Ended++
		t.remember(key)
	case t.isEnded(key):
		result = Repeated
		t.stats.Repeated++
	default:
		t.stats.Unknown++
	}
	t.mu.Unlock()
	if h != nil {
		h.end(cost)
	}
	return result
}

// Run ends the requests that are too old, until ctx ends. Then it ends all that are held, so
// that they give back their permits, and returns nil.
func (t *Tickets) Run(ctx context.Context) error {
	ticker := time.NewTicker(max(time.Millisecond, min(time.Second, t.config.Age/8)))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			t.expire(t.nowFunc().Add(1000 * t.config.Age))
			return nil
		case <-ticker.C:
			if n := t.expire(t.nowFunc()); n > 0 {
				t.warn(&t.lines.expired, "the end of requests was not told: they are ended without cost", "requests", n, "ticket_age", t.config.Age)
			}
		}
	}
}

// Stats returns the counters.
func (t *Tickets) Stats() TicketStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Held = t.live
	return s
}

func idOf(id string) (key ticketID) {
	sum := sha256.Sum256([]byte(id))
	copy(key[:], sum[:])
	return key
}

// end ends the request's tickets. The first bears the cost of the whole request only if it
// counts it; each ticket charges the keys of its own rules.
func (h *held) end(cost middleware.Cost) {
	for _, ticket := range h.tickets {
		ticket.End(cost)
	}
}

// add adds a request. The caller holds mu.
func (t *Tickets) add(h *held) {
	h.since = t.nowFunc()
	same := t.byID[h.id]
	if same == nil {
		same = new(heldRequests)
		t.byID[h.id] = same
	}
	same.list = append(same.list, h)
	if h.older = t.newest; h.older != nil {
		h.older.newer = h
	} else {
		t.oldest = h
	}
	t.newest = h
	t.live++
}

// take removes the oldest request with this id and returns it, or nil. The caller holds mu.
func (t *Tickets) take(key ticketID) *held {
	same := t.byID[key]
	if same == nil {
		return nil
	}
	h := same.list[0]
	if same.list = same.list[1:]; len(same.list) == 0 {
		delete(t.byID, key)
	}
	if h.older != nil {
		h.older.newer = h.newer
	} else {
		t.oldest = h.newer
	}
	if h.newer != nil {
		h.newer.older = h.older
	} else {
		t.newest = h.older
	}
	h.older, h.newer = nil, nil
	t.live--
	return h
}

// expire ends the requests that are older than the age at now, and returns their number.
func (t *Tickets) expire(now time.Time) (n int) {
	const batch = 256 // for which mu is held at a time
	for {
		var old []*held
		t.mu.Lock()
		for len(old) < batch && t.oldest != nil && now.Sub(t.oldest.since) >= t.config.Age {
			old = append(old, t.take(t.oldest.id))
			t.stats.Expired++
		}
		t.turn(now)
		t.mu.Unlock()
		for _, h := range old {
			h.end(middleware.Cost{})
		}
		if n += len(old); len(old) < batch {
			return n
		}
	}
}

// remember keeps the id of a request that has ended, for an age at least, unless there are
// more than Max. The caller holds mu.
func (t *Tickets) remember(key ticketID) {
	if len(t.ended) >= t.config.Max {
		t.turnAt = time.Time{}
		t.turn(t.nowFunc())
	}
	t.ended[key] = struct{}{}
}

// turn forgets the ids of former requests once an age is over. The caller holds mu.
func (t *Tickets) turn(now time.Time) {
	if now.Before(t.turnAt) {
		return
	}
	clear(t.former)
	t.ended, t.former = t.former, t.ended
	t.turnAt = now.Add(t.config.Age)
}

func (t *Tickets) isEnded(key ticketID) bool {
	if _, found := t.ended[key]; found {
		return true
	}
	_, found := t.former[key]
	return found
}

// warn logs a few lines a minute.
func (t *Tickets) warn(lines *loglimit.Limit, text string, args ...any) {
	lines.Warn(loglimit.Rate{Burst: 2, Every: 30 * time.Second}, t.config.Log, text, args...)
}
