package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// office is what a writer knows while it writes an owner's history.
type office struct {
	epoch    int64           // its claim, or 0
	sizes    map[field]int64 // bytes of the owner's fields in Redis
	open     [levels]*chunk  // newest chunk of each level
	first    [levels]int64   // earliest second in each level
	others   int64           // bytes of other owners
	owners   int             // number of owners
	looked   time.Time       // time at which others was read
	retry    time.Time       // time of the next attempt to write
	failures int
}

// Answers of the script that writes.
const (
	answerOK     = "ok"
	answerFenced = "fenced"
	answerForget = "forget"
)

var errFenced = errors.New("another aggregator writes the history of this part of the keys")

// write does all that is due.
func (w *Writer) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if full, err := w.isFull(ctx); full || err != nil {
		return err
	}
	w.mu.Lock()
	stale := w.stale
	w.mu.Unlock()
	if w.epoch == 0 || stale {
		if err := w.takeOffice(ctx); err != nil {
			return err
		}
	}
	if time.Since(w.looked) > 10*time.Second {
		if err := w.lookAtOthers(ctx); err != nil {
			return err
		}
	}
	b, err := w.prepare(ctx)
	answer := answerOK
	if err == nil && len(b.set)+len(b.drop) > 0 {
		answer, err = w.send(ctx, b.set, b.drop)
	}
	if err == nil && answer == answerOK {
		w.confirm(b)
		return nil
	}
	w.undo(b)
	w.epoch = 0 // memory and Redis differ, or a key was forgotten: step reads Redis again
	switch {
	case err != nil:
		return err
	case answer == answerFenced:
		return errFenced
	}
	return w.learnForgotten(ctx)
}

// isFull reports whether the server has too little room.
func (w *Writer) isFull(ctx context.Context) (bool, error) {
	r, err := w.cfg.Store.room(ctx)
	if err != nil {
		return false, fmt.Errorf("the server's memory is not known: %w", err)
	}
	was, limit := w.stats.Load().Paused != "", stopAt
	if was {
		limit = resumeAt
	}
	if full := r.fraction() >= limit; !full {
		if was {
			w.cfg.Log.Info("history goes on: Redis has room again", "owner", w.cfg.Owner)
		}
		w.stats.Change(func(s *Stats) { s.Paused = "" })
		return false, nil
	}
	words := r.words()
	if !was {
		w.cfg.Log.Warn("history has stopped", "owner", w.cfg.Owner, "why", words)
	}
	w.stats.Change(func(s *Stats) { s.Paused = words })
	return true, nil
}

// takeOffice claims the owner, and reads what earlier writers have left.
func (w *Writer) takeOffice(ctx context.Context) error {
	s := w.cfg.Store
	epoch, err := s.claim(ctx, w.cfg.Owner)
	if err != nil {
		return err
	}
	w.office = office{failures: w.failures}
	if err := w.learnForgotten(ctx); err != nil {
		return err
	}
	if w.sizes, err = s.sizes(ctx, w.cfg.Owner); err != nil {
		return err
	}
	states, err := s.states(ctx)
	if err != nil {
		return err
	}
	w.first = states[w.cfg.Owner].First
	var seconds []int64
	before := int64(0)
	for f := range w.sizes {
		switch f.hash {
		case 0:
			seconds = append(seconds, f.start)
		case 1:
			before = max(before, f.start+steps[0].span)
		}
	}
	slices.Sort(seconds)
	found, unreadable, err := s.readAll(ctx, s.panes(w.cfg.Owner), seconds)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = max(w.before, before)
	for _, c := range found {
		if c == nil || c.step != 1 || len(c.known) != 1 {
			continue
		}
		removed := c.forget(w.forget.names)
		// Both are lower bounds of the same counts.
		if p := w.panes[c.start]; p == nil || p.total() < c.total() {
			w.panes[c.start] = &pane{chunk: c, unsaved: removed > 0}
			w.newest = max(w.newest, c.start)
		}
	}
	for second := range w.panes {
		if second < w.before {
			delete(w.panes, second)
		}
	}
	w.stats.Change(func(s *Stats) { s.Dropped.Unreadable += int64(unreadable) })
	w.epoch, w.stale = epoch, false
	return nil
}

// learnForgotten drops the forgotten keys from the panes in memory.
func (w *Writer) learnForgotten(ctx context.Context) error {
	f, err := w.cfg.Store.forgetting(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget = f
	for _, p := range w.panes {
		if p.forget(f.names) > 0 {
			p.unsaved = true
		}
	}
	return nil
}

// lookAtOthers reads how much room other owners take.
func (w *Writer) lookAtOthers(ctx context.Context) error {
	states, err := w.cfg.Store.states(ctx)
	if err != nil {
		return err
	}
	w.others, w.owners, w.looked = 0, 1, time.Now()
	for owner, state := range states {
		if owner != w.cfg.Owner && time.Since(time.Unix(state.Until, 0)) < w.cfg.Keep {
			w.others += state.Bytes
			w.owners++
		}
	}
	return nil
}

// send writes fields, with the state of the owner after it.
func (w *Writer) send(ctx context.Context, set map[field][]byte, drop []field) (string, error) {
	sizes := maps.Clone(w.sizes)
	for f, value := range set {
		sizes[f] = int64(len(value))
	}
	for _, f := range drop {
		delete(sizes, f)
	}
	w.mu.Lock()
	state := ownerState{Bytes: sum(sizes), Until: w.newest, First: w.first, Seen: w.forget.version}
	w.mu.Unlock()
	answer, err := w.cfg.Store.write(ctx, w.cfg.Owner, w.epoch, state.Seen, state, w.cfg.Keep, set, drop)
	if err == nil && answer == answerOK {
		w.sizes = sizes
		w.stats.Change(func(s *Stats) { s.Bytes = state.Bytes })
	}
	return answer, err
}

// fieldCost is the memory in bytes that Redis needs for a field, apart from its value.
const fieldCost = 100

func sum(sizes map[field]int64) (n int64) {
	for _, size := range sizes {
		n += size + fieldCost
	}
	return n
}

// readAtOnce is the number of chunks that one call reads, so that none holds up others for long.
const readAtOnce = 8

// readAll is like read, in several calls.
func (s *Store) readAll(ctx context.Context, hash string, starts []int64) (found []*chunk, unreadable int, err error) {
	for part := range slices.Chunk(starts, readAtOnce) {
		some, n, err := s.read(ctx, hash, part)
		if err != nil {
			return nil, 0, err
		}
		found, unreadable = append(found, some...), unreadable+n
	}
	return found, unreadable, nil
}
