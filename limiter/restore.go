package limiter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Restore adds the keys of a snapshot that are not known yet. It returns how many states it
// restored, and how many it left out. It leaves out states that are in their initial state by
// now, states of keys that are known or have no room, and states of algorithms that this Memory
// does not have. After an error, the keys before that place are restored. The error is
// [ErrSnapshot] if the bytes are at fault.
func (m *Memory) Restore(r io.Reader) (restored, left int, err error) {
	s := &snapshotReader{m: m, r: bufio.NewReader(r), now: m.now()}
	if err := s.read(); err != nil {
		return s.counts.states, s.counts.left, fmt.Errorf("limiter: restore a snapshot: %w", err)
	}
	return s.counts.states, s.counts.left, nil
}

type snapshotReader struct {
	m      *Memory
	r      *bufio.Reader
	now    time.Duration
	quota  *rules.Quota // that of the last record
	last   *keyNode     // node of the key that was read last; nil if it was left out
	counts snapshotCounts
}

func (s *snapshotReader) read() error {
	for first := true; ; first = false {
		line, err := s.r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("it ends too early: %w", ErrSnapshot)
		case err != nil:
			return err
		case first && string(line) != snapshotHeader:
			return fmt.Errorf("it does not begin with %q: %w", snapshotHeader, ErrSnapshot)
		case first:
			continue
		}
		if end, err := s.readLine(line[:len(line)-1]); err != nil {
			return fmt.Errorf("%w: %w", ErrSnapshot, err)
		} else if end {
			return nil
		}
	}
}

// readLine reads the record of a line, and reports whether it is the last one.
func (s *snapshotReader) readLine(line []byte) (end bool, err error) {
	_, text, _ := bytes.Cut(line, []byte(" "))
	if string(appendSnapshotLine(nil, text)) != string(line)+"\n" {
		return false, errors.New("a record whose checksum is wrong")
	}
	var r snapshotRecord
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return false, fmt.Errorf("a record: %w", err)
	}
	if r.States != nil {
		if count := s.counts.states + s.counts.left; *r.States != count {
			return true, fmt.Errorf("it has %d states, not the number at its end", count)
		}
		return true, nil
	}
	if r.Quota != nil {
		s.quota = r.Quota
	}
	if s.quota == nil || len(r.Name) == 0 || len(r.Key) == 0 {
		return false, errors.New("a state without its quota, name or key")
	}
	return false, s.addState(string(r.Name), string(r.Key), r.State)
}

// addState adds a state of a key.
func (s *snapshotReader) addState(name, key string, numbers []int64) error {
	q := s.quota
	a, err := s.m.plans.algorithmFor(q)
	switch {
	case errors.Is(err, ErrUnsupported):
		s.counts.left++
		return nil
	case err != nil:
		return err
	}
	state := a.New(q, s.now)
	stored := storableOf(state)
	if stored == nil {
		s.counts.left++
		return nil
	}
	if !stored.setNumbers(numbers) {
		return errors.New("an impossible state")
	}
	hash := s.m.hash(s.m.hashOf(name), key)
	id, o := appendNamed(nil, name, key), side{familyOf(q), q, state}
	if s.last == nil || !s.last.hasKey(hash, id) || !s.last.kept.restore(o, s.now) {
		s.last = s.m.table.restore(s.now, hash, id, o, lendable(a))
	}
	if s.last != nil {
		s.counts.states++
	} else {
		s.counts.left++
	}
	return nil
}

// restore adds a state to the table, and returns its node. It returns nil if the key is known,
// if the state equals a new one, or if there is no room. Without room it keeps the state's
// debt.
func (k *table) restore(now time.Duration, hash uint64, key []byte, o side, plan *words) *keyNode {
	s := k.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.state.FreshAfter(now) == 0 || k.findNode(hash, key) != nil {
		return nil
	}
	o.state, _ = k.inheritDebt(s, key, o.family, o.state, now)
	if t := instant(now); !k.makeRoom(s, t) {
		k.keepDebt(s, k.hash(key), o.family, o.state, t)
		return nil
	}
	n := newGuarded(hash, key, o, plan)
	k.insert(hash, n)
	return n
}

// restore adds another state of a key that was just restored. It returns false if the key was
// dropped.
func (g *keyStates) restore(o side, now time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dropped {
		return false
	}
	g.settle()
	g.addState(o, now)
	g.lend()
	return true
}
