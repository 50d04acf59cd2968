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

	"github.com/hotparam/hotparam"
)

// A snapshot is a header and frames:
//
//	header  "hotparam limits 1\n"
//	frame   uvarint length, kind and body; uint32 CRC (Castagnoli) of kind and body
//	'q'     a quota, as JSON; they are numbered from 0 in their order
//	'k'     uvarint number of its quota, uvarint length of the name, name, uvarint
//	        length of the key, key, and the rest is the state; of a key with several states,
//	        since it was under several quotas, the one of the quota that holds comes first
//	'e'     the end: uvarint how many 'k' there were
//
// Numbers are big-endian; instants are nanoseconds since the Unix epoch.
const snapshotHeader = "hotparam limits 1\n"

// Bounds of a snapshot.
const (
	maxFrame          = 16 << 20
	maxSnapshotKey    = 64 << 10 // bytes of a name, or a key
	maxSnapshotQuotas = 1 << 16
)

// ErrSnapshot says that the bytes are not a snapshot, or not a whole one.
var ErrSnapshot = errors.New("limiter: not a whole snapshot of limits")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SnapshotStats tells what became of the keys of a snapshot.
type SnapshotStats struct {
	Keys int // states written, or restored: a key has several where it was under several quotas
	// Left is how many were left out: those of algorithms of the user's own and with
	// more than 65,536 bytes; when restored also those that are as good as new by now
	// or known already, and those for which there is no room.
	Left int
}

// Snapshot writes the state of all keys, for a Restore after a restart. Keys are asked
// as ever meanwhile; each is written as it is at some moment of the call.
func (m *Memory) Snapshot(w io.Writer) (SnapshotStats, error) {
	buffered := bufio.NewWriter(w)
	s := &snapshotWriter{w: buffered, quotas: make(map[hotparam.Quota]uint64)}
	_, s.err = buffered.WriteString(snapshotHeader)
	m.states.table.each(func(n *node[guarded]) bool {
		s.key(n)
		return s.err == nil
	})
	s.frame('e', binary.AppendUvarint(nil, uint64(s.stats.Keys)))
	if s.err == nil {
		s.err = buffered.Flush()
	}
	if s.err != nil {
		return s.stats, fmt.Errorf("limiter: write a snapshot: %w", s.err)
	}
	return s.stats, nil
}

// snapshotWriter writes until the first error.
type snapshotWriter struct {
	w      *bufio.Writer
	quotas map[hotparam.Quota]uint64
	body   []byte // of the frame at hand
	stats  SnapshotStats
	err    error
}

func (s *snapshotWriter) frame(kind byte, body []byte) {
	for _, part := range [][]byte{
		binary.AppendUvarint(nil, uint64(1+len(body))),
		{kind},
		body,
		binary.BigEndian.AppendUint32(nil, crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, body)),
	} {
		if s.err == nil {
			_, s.err = s.w.Write(part)
		}
	}
}

func (s *snapshotWriter) key(n *node[guarded]) {
	name, key := unnamed(n.key)
	if len(name) > maxSnapshotKey || len(key) > maxSnapshotKey {
		s.stats.Left++
		return
	}
	for _, e := range n.kept.encoded() {
		s.state(name, key, e)
	}
}

// encodedState is one state of a key; nil bytes: one of the user's own.
type encodedState struct {
	quota hotparam.Quota
	bytes []byte
}

// encoded are all states of a key, the one of the quota that holds first; none where it
// was dropped meanwhile.
func (g *guarded) encoded() (all []encodedState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == nil {
		return nil
	}
	for _, x := range append([]side{g.side}, g.others...) {
		all = append(all, x.encoded()...)
	}
	return all
}

func (x *side) encoded() []encodedState {
	state, q := x.state, *x.quota
	lock, locked := state.(*penalty)
	if locked && q.Penalty == 0 {
		state = lock.inner // the lock bars nobody, and ends
	}
	bytes, ok := encodeState(nil, state)
	if !ok {
		return []encodedState{{quota: q}}
	}
	all := []encodedState{{q, bytes}}
	if locked {
		state = lock.inner
	}
	if w, ok := state.(interface{ besides() []encodedState }); ok {
		all = append(all, w.besides()...)
	}
	return all
}

func (s *snapshotWriter) state(name, key string, e encodedState) {
	quota := e.quota
	number, known := s.quotas[quota]
	if e.bytes == nil || !known && len(s.quotas) >= maxSnapshotQuotas {
		s.stats.Left++
		return
	}
	if !known {
		number = uint64(len(s.quotas))
		s.quotas[quota] = number
		text, err := json.Marshal(quota)
		if err != nil {
			s.err = err
			return
		}
		s.frame('q', text)
	}
	b := binary.AppendUvarint(s.body[:0], number)
	b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	b = append(b, e.bytes...)
	s.body = b
	if len(b) >= maxFrame {
		s.stats.Left++
		return
	}
	s.frame('k', b)
	s.stats.Keys++
}

// encodeState appends a state; false: it is one of the user's own.
func encodeState(b []byte, state State) ([]byte, bool) {
	if lock, ok := state.(*penalty); ok {
		if _, ok := lock.inner.(storable); !ok {
			return b, false
		}
	}
	s, ok := state.(storable)
	if !ok {
		return b, false
	}
	return s.appendState(b), true
}

// Restore adds the keys of a snapshot that are not known yet. With an error, which is
// [ErrSnapshot] where the bytes are at fault, the keys before that place were restored.
func (m *Memory) Restore(r io.Reader) (SnapshotStats, error) {
	s := &snapshotReader{m: m, r: bufio.NewReader(r), now: m.clock()}
	if err := s.read(); err != nil {
		return s.stats, fmt.Errorf("limiter: restore a snapshot: %w", err)
	}
	return s.stats, nil
}

type snapshotReader struct {
	m      *Memory
	r      *bufio.Reader
	now    time.Duration
	quotas []*hotparam.Quota
	last   *node[guarded] // of the key that was read last; nil: it was left out
	stats  SnapshotStats
}

func (s *snapshotReader) read() error {
	header := make([]byte, len(snapshotHeader))
	if _, err := io.ReadFull(s.r, header); err != nil {
		return cut(err)
	}
	if string(header) != snapshotHeader {
		return fmt.Errorf("it does not begin with %q: %w", snapshotHeader, ErrSnapshot)
	}
	for {
		kind, body, err := s.frame()
		if err != nil {
			return err
		}
		switch kind {
		case 'q':
			err = s.quota(body)
		case 'k':
			err = s.key(body)
		case 'e':
			return s.end(body)
		default:
			err = fmt.Errorf("a frame of kind %q: %w", kind, ErrSnapshot)
		}
		if err != nil {
			return err
		}
	}
}

// frame reads the next frame. It takes no more memory than there are bytes.
func (s *snapshotReader) frame() (kind byte, body []byte, err error) {
	size, err := binary.ReadUvarint(s.r)
	if err != nil {
		return 0, nil, cut(err)
	}
	if size < 1 || size > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes: %w", size, ErrSnapshot)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, s.r, int64(size)+4); err != nil {
		return 0, nil, cut(err)
	}
	frame, sum := b.Bytes()[:size], b.Bytes()[size:]
	if crc32.Checksum(frame, castagnoli) != binary.BigEndian.Uint32(sum) {
		return 0, nil, fmt.Errorf("a frame whose checksum is wrong: %w", ErrSnapshot)
	}
	return frame[0], frame[1:], nil
}

// cut is an error of reading, where an end is one of the bytes.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it ends too early: %w", ErrSnapshot)
	}
	return err
}

func (s *snapshotReader) quota(body []byte) error {
	if len(s.quotas) >= maxSnapshotQuotas {
		return fmt.Errorf("over %d quotas: %w", maxSnapshotQuotas, ErrSnapshot)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	q := &hotparam.Quota{}
	if err := d.Decode(q); err != nil {
		return fmt.Errorf("a quota: %w: %w", err, ErrSnapshot)
	}
	s.quotas = append(s.quotas, q)
	return nil
}

func (s *snapshotReader) key(body []byte) error {
	number, n := binary.Uvarint(body)
	if n <= 0 || number >= uint64(len(s.quotas)) {
		return fmt.Errorf("a key without its quota: %w", ErrSnapshot)
	}
	name, rest, ok := counted(body[n:])
	key, rest, ok2 := counted(rest)
	if !ok || !ok2 {
		return fmt.Errorf("a key cut short: %w", ErrSnapshot)
	}
	q := s.quotas[number]
	a, err := s.m.plans.of(q)
	switch {
	case errors.Is(err, ErrUnsupported):
		s.stats.Left++
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", err, ErrSnapshot)
	}
	state := a.New(q, s.now)
	if _, ok := encodeState(nil, state); !ok {
		s.stats.Left++
		return nil
	}
	if !state.(storable).restoreState(rest) {
		return fmt.Errorf("a state that cannot be: %w", ErrSnapshot)
	}
	id, o := named(string(name), string(key)), side{familyOf(q), q, state}
	if s.last == nil || s.last.key != id || !s.last.kept.restore(o, s.now) {
		s.last = s.m.states.restore(s.now, s.m.hash(string(name), string(key)), id, o)
	}
	if s.last != nil {
		s.stats.Keys++
	} else {
		s.stats.Left++
	}
	return nil
}

// counted takes a length and as many bytes, 1 at least, off the front.
func counted(b []byte) (text, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size < 1 || size > maxSnapshotKey || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

func (s *snapshotReader) end(body []byte) error {
	if count, n := binary.Uvarint(body); n <= 0 || count != uint64(s.stats.Keys+s.stats.Left) {
		return fmt.Errorf("it has %d keys, not as many as it says: %w", s.stats.Keys+s.stats.Left, ErrSnapshot)
	}
	return nil
}

// restore puts a state in, unless its key is known or there is no need or room for it; nil:
// it did not.
func (k *states) restore(now time.Duration, hash uint64, key string, o side) *node[guarded] {
	s := k.table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.state.FreshAfter(now) == 0 || k.table.find(hash, []byte(key)) != nil {
		return nil
	}
	if !k.table.room(s, instant(now)) {
		return nil
	}
	n := newGuarded(hash, key, o)
	k.table.put(n)
	return n
}

// restore adds another state of a key that was restored just now; false: it was dropped.
func (g *guarded) restore(o side, now time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dropped {
		return false
	}
	g.put(o, now)
	return true
}
