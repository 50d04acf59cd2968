package accesslog

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"
	"time"
)

// blockSize is the size of the allocations that texts share. A block has room for the longest
// line.
const blockSize = 4 * MaxLine

// pageSize is the number of records in one allocation. Records are joined once, to be sorted: a
// slice that grows would leave several times its size to the garbage collector.
const pageSize = 1 << 14

// sorted keeps requests in memory, 32 bytes and their text each, and yields them in the order of
// time.
type sorted struct {
	pages  [][]record // all but the last page are full
	blocks []string   // full blocks
	block  strings.Builder
}

type record struct {
	nanos    int64
	bytes    int64
	position uint64 // number of the block and offset in it, 32 bits each; increases with each add
	target   uint32 // bytes of the target in the text, which is the method, the address, then the target
	status   uint16 // status, with hasMore if the duration and the values follow the target
	method   uint8
	addr     uint8
}

// hasMore is a bit above all statuses.
const hasMore = 1 << 15

func (s *sorted) add(r *parsedLine) {
	var more [2 * binary.MaxVarintLen64]byte
	extra := more[:0]
	status := uint16(r.status)
	if r.took > 0 || len(r.values) > 0 {
		status |= hasMore
		extra = binary.AppendUvarint(binary.AppendUvarint(extra, uint64(r.took)), uint64(len(r.values)))
	}
	size := len(r.method) + len(r.addr) + len(r.target) + len(extra) + len(r.values)
	if s.block.Cap() == 0 || s.block.Len()+size > blockSize {
		s.seal()
		s.block.Grow(blockSize) // so that it never moves
	}
	if n := len(s.pages); n == 0 || len(s.pages[n-1]) == pageSize {
		s.pages = append(s.pages, make([]record, 0, pageSize))
	}
	page := &s.pages[len(s.pages)-1]
	*page = append(*page, record{
		nanos:    r.nanos,
		bytes:    r.bytes,
		position: uint64(len(s.blocks))<<32 | uint64(s.block.Len()),
		target:   uint32(len(r.target)),
		status:   status,
		method:   uint8(len(r.method)),
		addr:     uint8(len(r.addr)),
	})
	s.block.Write(r.method)
	s.block.Write(r.addr)
	s.block.Write(r.target)
	s.block.Write(extra)
	s.block.Write(r.values)
}

func (s *sorted) seal() {
	if s.block.Len() > 0 {
		s.blocks = append(s.blocks, s.block.String())
		s.block.Reset()
	}
}

// entries sorts the requests and yields them. Equal times keep the order in which they were
// added, since position breaks ties. So the sort need not be stable, and the faster one is used.
func (s *sorted) entries() iter.Seq[Entry] {
	s.seal()
	records := slices.Concat(s.pages...)
	s.pages = nil
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.nanos, b.nanos), cmp.Compare(a.position, b.position))
	})
	return func(yield func(Entry) bool) {
		for _, r := range records {
			text := s.blocks[r.position>>32][uint32(r.position):]
			method, text := text[:r.method], text[r.method:]
			addr, text := text[:r.addr], text[r.addr:]
			e := Entry{
				Time:   time.Unix(0, r.nanos).UTC(),
				Method: method,
				Addr:   addr,
				Target: text[:r.target],
				Status: int(r.status &^ hasMore),
				Bytes:  r.bytes,
			}
			if r.status&hasMore != 0 {
				took, tail := cutUvarint(text[r.target:])
				size, tail := cutUvarint(tail)
				e.Took, e.values = time.Duration(took), tail[:size]
			}
			if !yield(e) {
				return
			}
		}
	}
}

// cutUvarint decodes the number at the beginning of s.
func cutUvarint(s string) (n uint64, tail string) {
	for i, shift := 0, 0; ; i, shift = i+1, shift+7 {
		n |= uint64(s[i]&0x7f) << shift
		if s[i] < 0x80 {
			return n, s[i+1:]
		}
	}
}
