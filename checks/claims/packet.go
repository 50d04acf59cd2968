package claims

import (
	"strconv"
	"strings"
)

// packet is one on its way.
type packet struct {
	sent     int64
	arrives  int64
	order    uint64
	instance int
	number   uint64
	twin     *twins // nil: it comes once
	bytes    []byte
}

// twins are two packets that are the same.
type twins struct{ arrived bool }

// again reports whether the same packet has arrived before.
func (p *packet) again() bool {
	if p.twin == nil {
		return false
	}
	again := p.twin.arrived
	p.twin.arrived = true
	return again
}

// content is one line of a packet.
type content struct {
	rule int
	key  int32
	n    int64
	// The count is of [from, to).
	from, to int64
}

// readPacket reads what is in a packet, in the plainest way, from what the
// documentation says of it, and how much it says that its sender hides of a key: what
// is dropped, and twice what is held back. It was sent at an instant.
func readPacket(bytes []byte, sent int64, id func([]byte) (int32, bool)) (all []content, held int64) {
	var at int64
	var text []byte
	for line := range strings.SplitSeq(string(bytes), "\n") {
		if _, meta, ok := strings.Cut(line, "hotparam.meta:1|c|#"); ok {
			for field := range strings.SplitSeq(meta, ",") {
				if value, ok := strings.CutPrefix(field, "t:"); ok {
					at, _ = strconv.ParseInt(value, 10, 64)
				}
				if value, ok := strings.CutPrefix(field, "h:"); ok {
					h, _ := strconv.ParseInt(value, 10, 64)
					held += 2 * (h - 1)
				}
				if value, ok := strings.CutPrefix(field, "u:"); ok {
					u, _ := strconv.ParseInt(value, 10, 64)
					held += u
				}
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		prefix, encoded, _ := strings.Cut(name, ".hot_param.")
		rule, _ := strconv.Atoi(strings.TrimPrefix(prefix, "claims.r"))
		value, _, _ = strings.Cut(value, "|")
		n, _ := strconv.ParseInt(value, 10, 64)
		text = text[:0]
		for i := 0; i < len(encoded); i++ {
			if encoded[i] == '%' {
				b, _ := strconv.ParseUint(encoded[i+1:i+3], 16, 8)
				text = append(text, byte(b))
				i += 2
			} else {
				text = append(text, encoded[i])
			}
		}
		if key, ok := id(text); ok {
			all = append(all, content{rule, key, n, at, sent})
		}
	}
	return all, held
}

// flight are the packets on their way, the next to arrive first.
type flight []packet

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	return f[i].arrives < f[j].arrives || f[i].arrives == f[j].arrives && f[i].order < f[j].order
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }

// Push belongs to heap.
func (f *flight) Push(p any) { *f = append(*f, p.(packet)) }

// Pop belongs to heap.
func (f *flight) Pop() any {
	last := len(*f) - 1
	p := (*f)[last]
	(*f)[last] = packet{}
	*f = (*f)[:last]
	return p
}
