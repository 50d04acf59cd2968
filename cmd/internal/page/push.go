package page

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/rules"
)

const (
	// maxStreams bounds the readers. Each holds a connection of a server that has 128, and that
	// must answer requests for metrics as well.
	maxStreams = 32
	// maxWaiting is the number of changes that may wait for a reader. A slower reader is cut
	// off.
	maxWaiting = 16
	// pause is the least time between changes. No one can see more than ten a second.
	pause = 100 * time.Millisecond
	// membersEvery is the interval at which members are sent. Their heartbeats change each
	// second.
	membersEvery = 2 * time.Second
	// recentEvents is the number of past events in a page's first snapshot.
	recentEvents = 100
)

// oneAMinute is the rate of log lines of each kind.
var oneAMinute = loglimit.LineRate{Burst: 1, Every: time.Minute}

// hub sends changes to all readers. A change is computed and encoded once for all readers, and
// not at all if there are none.
type hub struct {
	cfg *Config
	log *slog.Logger

	mu       sync.Mutex
	readers  map[*streamReader]struct{}
	isClosed bool
	counters Stats
	cutLimit loglimit.Limit

	// The state that the readers know.
	seq     uint64
	rows    map[rules.Key]keyRow
	nextID  uint32
	ids     map[uint32]rules.Key
	parts   map[string]json.RawMessage // JSON of the parts of a change, by name
	total   int                        // number of members
	wrote   time.Time                  // time at which the members were last sent
	version string
}

// streamReader is one stream.
type streamReader struct {
	frames chan []byte   // encoded changes; nil for a reader of events only
	cut    chan struct{} // closed to end the reader
	why    string        // set before cut is closed
	peer   base.Peer
	since  time.Time
}

func newHub(c *Config) *hub {
	return &hub{
		cfg: c, log: c.Log, readers: make(map[*streamReader]struct{}), rows: make(map[rules.Key]keyRow), ids: make(map[uint32]rules.Key),
		parts: make(map[string]json.RawMessage),
	}
}

func (h *hub) stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.counters
	s.Streams = len(h.readers)
	return s
}

// run passes on changes until ctx ends, then ends all streams.
func (h *hub) run(ctx context.Context) error {
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.isClosed = true
		for r := range h.readers {
			h.endReader(r, "the aggregator ends")
		}
	}()
	for {
		changed := h.cfg.View.Changed() // before reading the state, so that no change is missed
		h.pushChanges()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		if base.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// pushChanges passes the latest changes to all readers of changes.
func (h *hub) pushChanges() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.readers) > 0 {
		h.update(time.Now())
	}
}

// update brings the state up to date, and passes the difference to the readers. h.mu is held.
func (h *hub) update(t time.Time) {
	s := h.cfg.View.Snapshot()
	if s.Seq == h.seq && s.Seq != 0 {
		return
	}
	h.seq = s.Seq
	c := h.difference(s, t)
	frame, err := encode("change", &c)
	if err != nil {
		h.log.Error("page: a change cannot be written", "err", err)
		return
	}
	for r := range h.readers {
		if r.frames == nil {
			continue
		}
		select {
		case r.frames <- frame:
		default:
			h.counters.Cut++
			h.endReader(r, "too slow: changes came faster than they were read")
			if _, ok := h.cutLimit.Allow(oneAMinute, t); ok {
				h.log.Warn("page: a reader is too slow and was cut off", "cut", h.counters.Cut)
			}
		}
	}
}

// difference updates the state to a snapshot and returns the change.
func (h *hub) difference(s *live.Snapshot, t time.Time) stateChange {
	c := stateChange{Now: now(s).UnixMilli()}
	rates := []byte{'['}
	seen := make(map[rules.Key]bool, len(s.Hot))
	for i := range s.Hot {
		hot := &s.Hot[i].Hot
		seen[hot.Key] = true
		old, known := h.rows[hot.Key]
		if !known {
			h.nextID++
			old.ID = h.nextID
			h.ids[old.ID] = hot.Key
		}
		r := newRow(old.ID, &s.Hot[i])
		switch {
		case !known || !r.sameButCounts(old):
			c.Put = append(c.Put, r)
		case r != old:
			if len(rates) > 1 {
				rates = append(rates, ',')
			}
			rates = r.appendCounts(rates)
		}
		h.rows[hot.Key] = r
	}
	for key, r := range h.rows {
		if !seen[key] {
			c.Gone = append(c.Gone, r.ID)
			delete(h.rows, key)
			delete(h.ids, r.ID)
		}
	}
	if len(rates) > 1 {
		rates = append(rates, ']')
		c.Rates = rates
	}
	rules := h.cfg.Rules()
	c.Suspects = h.part("suspects", listed.OfSuspects(s.Suspects))
	c.Summary = h.part("summary", listed.OfSummary(&s.Summary))
	c.Controls = h.part("controls", listed.OfControls(s.Controls))
	c.Facts = h.part("facts", newFacts(s, rules, h.cfg))
	if t.Sub(h.wrote) >= membersEvery || rules.Version != h.version {
		h.wrote, h.version = t, rules.Version
		all := members(s, rules.Version)
		h.total = len(all)
		if c.Members = h.part("members", all[:min(len(all), maxMembers)]); c.Members != nil {
			c.Total = h.total
		}
	}
	return c
}

// part returns the JSON of one part of the state, or nil if it has not changed.
func (h *hub) part(name string, value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil || bytes.Equal(text, h.parts[name]) {
		return nil
	}
	h.parts[name] = text
	return text
}

// join adds a reader. The first frame of a reader of changes is the whole state. If there are
// too many readers, the oldest one of the peer that has most makes room for a peer that has
// fewer.
func (h *hub) join(from base.Peer, readsChanges bool) (r *streamReader, ok bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isClosed || len(h.readers) >= maxStreams && !h.displace(from) {
		h.counters.Refused++
		return nil, false, nil
	}
	r = &streamReader{cut: make(chan struct{}), peer: from, since: time.Now()}
	if readsChanges {
		h.update(time.Now())
		r.frames = make(chan []byte, maxWaiting)
		frame, err := encode("snapshot", h.fullState())
		if err != nil {
			return nil, false, err
		}
		r.frames <- frame
	}
	h.readers[r] = struct{}{}
	return r, true, nil
}

// displace ends a stream to make room for newcomer, and reports whether there was one to end.
// h.mu is held.
func (h *hub) displace(newcomer base.Peer) bool {
	places := make(base.PeerPlaces)
	for r := range h.readers {
		places[r.peer]++
	}
	gives := places.Gives(newcomer)
	var oldest *streamReader
	for r := range h.readers {
		if gives(r.peer) && (oldest == nil || r.since.Before(oldest.since)) {
			oldest = r
		}
	}
	if oldest == nil || !places.Yields(oldest.peer, newcomer) {
		return false
	}
	h.counters.Cut++
	h.endReader(oldest, "too many streams of this address")
	return true
}

// fullState returns the state as a change from nothing. h.mu is held.
func (h *hub) fullState() *stateChange {
	c := &stateChange{
		Now: now(h.cfg.View.Snapshot()).UnixMilli(), Suspects: h.parts["suspects"], Summary: h.parts["summary"], Controls: h.parts["controls"],
		Members: h.parts["members"], Facts: h.parts["facts"], Total: h.total, Events: h.cfg.View.Recent(recentEvents),
	}
	for _, r := range h.rows {
		c.Put = append(c.Put, r)
	}
	slices.SortFunc(c.Put, func(a, b keyRow) int { return int(a.ID) - int(b.ID) })
	return c
}

// removeReader removes a reader that has ended.
func (h *hub) removeReader(r *streamReader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, r)
}

// cutSlow ends a reader that lost events.
func (h *hub) cutSlow(r *streamReader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counters.Cut++
	h.endReader(r, "too slow: events came faster than they were read")
}

// endReader ends a reader for the reason why. h.mu is held.
func (h *hub) endReader(r *streamReader, why string) {
	if _, reads := h.readers[r]; reads {
		delete(h.readers, r)
		r.why = why
		close(r.cut)
	}
}

// full reports whether there is no room for another reader.
func (h *hub) full() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.readers) >= maxStreams
}

// keyOf returns the hot key with this id in the streams.
func (h *hub) keyOf(id uint32) (rules.Key, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, ok := h.ids[id]
	return key, ok
}
