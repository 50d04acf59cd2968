package limiter

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hotparam/hotparam/rules"
)

// A snapshot is a header and frames:
//
//	header  "hotparam limits 1\n"
//	frame   uvarint length, kind and body; uint32 CRC (Castagnoli) of kind and body
//	'q'     a quota, as JSON; they are numbered from 0 in their order
//	'k'     uvarint number of its quota, uvarint length of the name, name, uvarint
//	        length of the key, key, and the rest is the state; a key that was under several
//	        quotas has several states, and that of the quota in force comes first
//	'e'     the end: uvarint number of 'k' frames
//
// Numbers are big-endian; instants are nanoseconds since the Unix epoch.
const snapshotHeader = "hotparam limits 1\n"

// Bounds of a snapshot.
const (
	maxFrame          = 16 << 20
	maxSnapshotKey    = 64 << 10 // bytes of a name, or a key
	maxSnapshotQuotas = 1 << 16
)

// ErrSnapshot means that the bytes are not a snapshot, or not a whole one.
var ErrSnapshot = errors.New("limiter: not a whole snapshot of limits")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// snapshotCounts counts the states in a snapshot, and those left out.
type snapshotCounts struct{ keys, left int }

// Snapshot writes the states of all keys, for a Restore after a restart. It returns how many
// states it wrote, and how many it left out. A key has several states if it was under several
// quotas. States of custom algorithms are left out, and those of names and keys of over 65,536
// bytes. So are the debts of evicted keys, which no other process can find (see
// [Stats].Displaced). Keys may be asked for during the call; each is written as it is at some
// moment of the call.
func (m *Memory) Snapshot(w io.Writer) (written, left int, err error) {
	buffered := bufio.NewWriter(w)
	s := &snapshotWriter{w: buffered, m: m, quotas: make(map[rules.Quota]uint64)}
	_, s.err = buffered.WriteString(snapshotHeader)
	m.table.each(func(n *keyNode) bool {
		s.writeKey(n)
		return s.err == nil
	})
	s.writeFrame('e', binary.AppendUvarint(nil, uint64(s.counts.keys)))
	s.counts.left += m.table.indebted(instant(m.now()))
	if s.err == nil {
		s.err = buffered.Flush()
	}
	if s.err != nil {
		return s.counts.keys, s.counts.left, fmt.Errorf("limiter: write a snapshot: %w", s.err)
	}
	return s.counts.keys, s.counts.left, nil
}

// snapshotWriter writes until the first error.
type snapshotWriter struct {
	w      *bufio.Writer
	m      *Memory
	quotas map[rules.Quota]uint64
	body   []byte // body of the current frame
	counts snapshotCounts
	err    error
}

func (s *snapshotWriter) writeFrame(kind byte, body []byte) {
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

func (s *snapshotWriter) writeKey(n *keyNode) {
	id := n.key()
	name, key := unnamed(id)
	if len(name) > maxSnapshotKey || len(key) > maxSnapshotKey {
		s.counts.left++
		return
	}
	all := n.kept.encoded()
	if all == nil { // it was dropped, or renewed
		if current := s.m.findNode(name, key); current != nil {
			all = current.kept.encoded()
		}
	}
	for _, e := range all {
		s.writeState(name, key, e)
	}
}

// encodedState is one state of a key. Its bytes are nil for a custom algorithm.
type encodedState struct {
	quota rules.Quota
	bytes []byte
}

// encoded returns all states of a key, that of the quota in force first. It returns none if the
// key was dropped.
func (g *keyStates) encoded() (all []encodedState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == nil {
		return nil
	}
	g.settle()
	defer g.lend()
	for _, x := range append([]side{g.side}, g.others()...) {
		all = append(all, x.encoded()...)
	}
	return all
}

func (x *side) encoded() []encodedState {
	state, q := x.state, *x.quota
	lock, locked := state.(*penalty)
	if locked && q.Penalty == 0 {
		state = lock.inner // the lock denies nothing under this quota, and ends
	}
	bytes, ok := encodeState(nil, state)
	if !ok {
		return []encodedState{{quota: q}}
	}
	all := []encodedState{{q, bytes}}
	if locked {
		state = lock.inner
	}
	if w, ok := state.(interface{ encodeOthers() []encodedState }); ok {
		all = append(all, w.encodeOthers()...)
	}
	return all
}

func (s *snapshotWriter) writeState(name, key string, e encodedState) {
	quota := e.quota
	number, known := s.quotas[quota]
	if e.bytes == nil || !known && len(s.quotas) >= maxSnapshotQuotas {
		s.counts.left++
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
		s.writeFrame('q', text)
	}
	b := binary.AppendUvarint(s.body[:0], number)
	b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	b = append(b, e.bytes...)
	s.body = b
	if len(b) >= maxFrame {
		s.counts.left++
		return
	}
	s.writeFrame('k', b)
	s.counts.keys++
}

// encodeState appends a state. It returns false for the state of a custom algorithm.
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
