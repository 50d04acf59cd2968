package live

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/internal/published"
)

// position is the place of an event in the order of a namespace's events, and its identity. It
// is the ID of the entry in Redis's stream, with the event's kind and index. The end of a
// control has no entry there: its position is the time of the end and a hash of the key.
//
// The index is that of the key among the hot or the cooled keys of its change. The change in the
// stream never changes, so each reader finds the same index.
type position struct {
	millis uint64 // time of the stream's entry, or of the end
	seq    uint64 // sequence number of the stream's entry, or a hash of the key
	kind   byte   // one of the constants below
	index  int
}

// Kinds of positions.
const (
	hotKind     = 'h'
	coolKind    = 'k'
	controlKind = 'c'
	expiredKind = 'x'
)

// compare orders positions by time first, then by fields that give every reader the same order.
func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.millis, q.millis), cmp.Compare(p.seq, q.seq), cmp.Compare(p.kind, q.kind), cmp.Compare(p.index, q.index))
}

// String returns the position as an event's ID: "1732172445123-0.h7".
func (p position) String() string {
	dst := strconv.AppendUint(nil, p.millis, 10)
	dst = strconv.AppendUint(append(dst, '-'), p.seq, 10)
	return string(strconv.AppendInt(append(dst, '.', p.kind), int64(p.index), 10))
}

func (p position) isZero() bool { return p == position{} }

var errPosition = errors.New("want an event's id, such as 1732172445123-0.h7")

// ValidID reports whether id has the form of an event's ID.
func ValidID(id string) bool {
	_, err := parsePosition(id)
	return err == nil
}

func parsePosition(id string) (position, error) {
	entry, tail, ok := strings.Cut(id, ".")
	if !ok || len(tail) < 2 || !strings.ContainsRune("hkcx", rune(tail[0])) || len(id) > 80 {
		return position{}, errPosition
	}
	p, err := parseEntryID(entry)
	if err != nil {
		return position{}, errPosition
	}
	index, err := strconv.ParseUint(tail[1:], 10, 31)
	if err != nil {
		return position{}, errPosition
	}
	p.kind, p.index = tail[0], int(index)
	return p, nil
}

// parseEntryID reads the ID of a stream's entry, "1732172445123-0".
func parseEntryID(id string) (position, error) {
	millis, seq, ok := strings.Cut(id, "-")
	if !ok {
		return position{}, errPosition
	}
	p := position{}
	var err error
	if p.millis, err = strconv.ParseUint(millis, 10, 64); err != nil {
		return position{}, fmt.Errorf("id of a stream's entry: %w", err)
	}
	if p.seq, err = strconv.ParseUint(seq, 10, 64); err != nil {
		return position{}, fmt.Errorf("id of a stream's entry: %w", err)
	}
	return p, nil
}

// expiry returns the position of the end of a control.
func expiry(c *published.Control) position {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Key.String()))
	return position{millis: uint64(max(0, c.Until.UnixMilli())), seq: uint64(h.Sum32()), kind: expiredKind}
}
