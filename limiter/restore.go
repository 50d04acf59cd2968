package limiter

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
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
		return s.counts.keys, s.counts.left, fmt.Errorf("limiter: restore a snapshot: %w", err)
	}
	return s.counts.keys, s.counts.left, nil
}

type snapshotReader struct {
	m      *Memory
	r      *bufio.Reader
	now    time.Duration
	quotas []*rules.Quota
	last   *keyNode // node of the key that was read last; nil if it was left out
	counts snapshotCounts
}

func (s *snapshotReader) read() error {
	header := make([]byte, len(snapshotHeader))
	if _, err := io.ReadFull(s.r, header); err != nil {
		return readError(err)
	}
	if string(header) != snapshotHeader {
		return fmt.Errorf("it does not begin with %q: %w", snapshotHeader, ErrSnapshot)
	}
	for {
		kind, body, err := s.readFrame()
		if err != nil {
			return err
		}
		switch kind {
		case 'q':
			err = s.readQuota(body)
		case 'k':
			err = s.readKey(body)
		case 'e':
			return s.checkEnd(body)
		default:
			err = fmt.Errorf("a frame of kind %q: %w", kind, ErrSnapshot)
		}
		if err != nil {
			return err
		}
	}
}

// readFrame reads the next frame. It takes no more memory than there are bytes.
func (s *snapshotReader) readFrame() (kind byte, body []byte, err error) {
	size, err := binary.ReadUvarint(s.r)
	if err != nil {
		return 0, nil, readError(err)
	}
	if size < 1 || size > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes: %w", size, ErrSnapshot)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, s.r, int64(size)+4); err != nil {
		return 0, nil, readError(err)
	}
	frame, sum := b.Bytes()[:size], b.Bytes()[size:]
	if crc32.Checksum(frame, castagnoli) != binary.BigEndian.Uint32(sum) {
		return 0, nil, fmt.Errorf("a frame whose checksum is wrong: %w", ErrSnapshot)
	}
	return frame[0], frame[1:], nil
}

// readError returns the error of a read. The end of the bytes becomes [ErrSnapshot].
func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it ends too early: %w", ErrSnapshot)
	}
	return err
}

func (s *snapshotReader) readQuota(body []byte) error {
	if len(s.quotas) >= maxSnapshotQuotas {
		return fmt.Errorf("over %d quotas: %w", maxSnapshotQuotas, ErrSnapshot)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	q := &rules.Quota{}
	if err := d.Decode(q); err != nil {
		return fmt.Errorf("a quota: %w: %w", err, ErrSnapshot)
	}
	s.quotas = append(s.quotas, q)
	return nil
}

func (s *snapshotReader) readKey(body []byte) error {
	number, n := binary.Uvarint(body)
	if n <= 0 || number >= uint64(len(s.quotas)) {
		return fmt.Errorf("a key without its quota: %w", ErrSnapshot)
	}
	nameBytes, tail, ok := cutText(body[n:])
	keyBytes, tail, ok2 := cutText(tail)
	if !ok || !ok2 {
		return fmt.Errorf("a key cut short: %w", ErrSnapshot)
	}
	name, key := string(nameBytes), string(keyBytes)
	q := s.quotas[number]
	a, err := s.m.plans.algorithmFor(q)
	switch {
	case errors.Is(err, ErrUnsupported):
		s.counts.left++
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", err, ErrSnapshot)
	}
	state := a.New(q, s.now)
	if _, ok := encodeState(nil, state); !ok {
		s.counts.left++
		return nil
	}
	if !state.(storable).restoreState(tail) {
		return fmt.Errorf("an impossible state: %w", ErrSnapshot)
	}
	hash := s.m.hash(s.m.hashOf(name), key)
	id, o := appendNamed(nil, name, key), side{familyOf(q), q, state}
	if s.last == nil || !s.last.hasKey(hash, id) || !s.last.kept.restore(o, s.now) {
		s.last = s.m.table.restore(s.now, hash, id, o, lendable(a))
	}
	if s.last != nil {
		s.counts.keys++
	} else {
		s.counts.left++
	}
	return nil
}

// cutText cuts a length and as many bytes, at least 1, off the front.
func cutText(b []byte) (text, tail []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size < 1 || size > maxSnapshotKey || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

func (s *snapshotReader) checkEnd(body []byte) error {
	if count, n := binary.Uvarint(body); n <= 0 || count != uint64(s.counts.keys+s.counts.left) {
		return fmt.Errorf("it has %d keys, not the number at its end: %w", s.counts.keys+s.counts.left, ErrSnapshot)
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
