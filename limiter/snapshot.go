package limiter

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hotparam/hotparam/rules"
)

// A snapshot is a header and lines. Each line is the CRC-32C of a record, in hexadecimal digits, and
// the record as JSON. A key that was under several quotas has several states, and that of the quota
// in force comes first. Instants are nanoseconds since the Unix epoch.
const snapshotHeader = "hotparam limits 1\n"

type snapshotRecord struct {
	Quota  *rules.Quota `json:"quota,omitempty"` // nil if it is that of the record before
	Name   []byte       `json:"name,omitempty"`
	Key    []byte       `json:"key,omitempty"`
	State  []int64      `json:"state,omitempty"`
	States *int         `json:"states,omitempty"` // number of states; in the last record alone
}

// ErrSnapshot means that the bytes are not a snapshot, or not a whole one.
var ErrSnapshot = errors.New("limiter: not a whole snapshot of limits")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendSnapshotLine appends the line of a record.
func appendSnapshotLine(b, record []byte) []byte {
	return fmt.Appendf(b, "%08x %s\n", crc32.Checksum(record, castagnoli), record)
}

// snapshotCounts counts the states in a snapshot, and those left out.
type snapshotCounts struct{ states, left int }

// Snapshot writes the states of all keys, for a Restore after a restart. It returns how many
// states it wrote, and how many it left out. A key has several states if it was under several
// quotas. States of custom algorithms are left out. So are the debts of evicted keys, which no
// other process can find (see [Stats].Displaced). Keys may be asked for during the call; each is
// written as it is at some moment of the call.
func (m *Memory) Snapshot(w io.Writer) (written, left int, err error) {
	s := &snapshotWriter{w: bufio.NewWriter(w)}
	_, s.err = s.w.WriteString(snapshotHeader)
	m.table.each(func(n *keyNode) bool {
		s.writeKey(m, n)
		return s.err == nil
	})
	s.write(&snapshotRecord{States: &s.counts.states})
	s.counts.left += m.table.indebted(instant(m.now()))
	if s.err == nil {
		s.err = s.w.Flush()
	}
	if s.err != nil {
		s.err = fmt.Errorf("limiter: write a snapshot: %w", s.err)
	}
	return s.counts.states, s.counts.left, s.err
}

// snapshotWriter writes until the first error.
type snapshotWriter struct {
	w      *bufio.Writer
	quota  rules.Quota // that of the last record
	counts snapshotCounts
	err    error
}

func (s *snapshotWriter) write(r *snapshotRecord) {
	text, err := json.Marshal(r)
	if err == nil && s.err == nil {
		_, err = s.w.Write(appendSnapshotLine(nil, text))
	}
	if s.err == nil {
		s.err = err
	}
}

func (s *snapshotWriter) writeKey(m *Memory, n *keyNode) {
	name, key := unnamed(n.key())
	all := n.kept.encoded()
	if all == nil { // it was dropped, or renewed
		if current := m.findNode(name, key); current != nil {
			all = current.kept.encoded()
		}
	}
	for i := range all {
		e := &all[i]
		if e.numbers == nil {
			s.counts.left++
			continue
		}
		r := &snapshotRecord{Name: []byte(name), Key: []byte(key), State: e.numbers}
		if e.quota != s.quota {
			s.quota, r.Quota = e.quota, &e.quota
		}
		s.write(r)
		s.counts.states++
	}
}

// encodedState is one state of a key. Its numbers are nil for a custom algorithm.
type encodedState struct {
	quota   rules.Quota
	numbers []int64
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
	s := storableOf(state)
	if s == nil {
		return []encodedState{{quota: q}}
	}
	all := []encodedState{{q, s.numbers()}}
	if locked {
		state = lock.inner
	}
	if w, ok := state.(interface{ encodeOthers() []encodedState }); ok {
		all = append(all, w.encodeOthers()...)
	}
	return all
}

// storable is a state that a snapshot can hold.
type storable interface {
	// numbers returns the state, without its quota. There is at least one number.
	numbers() []int64
	// setNumbers sets a new state to the numbers that another one returned, and reports whether
	// they are valid. If not, the state must not be used.
	setNumbers(n []int64) bool
}

// storableOf returns a state as a storable, or nil for the state of a custom algorithm.
func storableOf(state State) storable {
	if lock, ok := state.(*penalty); ok {
		if _, ok := lock.inner.(storable); !ok {
			return nil
		}
	}
	s, _ := state.(storable)
	return s
}
