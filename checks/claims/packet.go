package claims

import (
	"strconv"
	"strings"
)

// packet is a packet in transit.
type packet struct {
	sent     int64
	arrives  int64
	order    uint64
	instance int
	number   uint64
	twin     *twins // nil if the packet comes once
	bytes    []byte
}

// twins is shared by two copies of the same packet.
type twins struct{ arrived bool }

// markArrived records the arrival of a packet and reports whether its twin has arrived before.
func (p *packet) markArrived() bool {
	if p.twin == nil {
		return false
	}
	again := p.twin.arrived
	p.twin.arrived = true
	return again
}

// content is the count in one line of a packet.
type content struct {
	rule int
	key  int32
	n    int64
	// The count belongs to [from, to).
	from, to int64
}

// readPacket reads the lines of a packet in the plainest way, from the format's documentation.
// The packet was sent at the time sent. By its own report, its sender hides at most held counts
// of a key: its drops, and twice the counts it holds back.
func readPacket(bytes []byte, sent int64, id func([]byte) (int32, bool)) (all []content, held int64) {
	var stamp int64
	var text []byte
	for line := range strings.SplitSeq(string(bytes), "\n") {
		if _, meta, ok := strings.Cut(line, "hotparam.meta:1|c|#"); ok {
			for field := range strings.SplitSeq(meta, ",") {
				if value, ok := strings.CutPrefix(field, "t:"); ok {
					stamp, _ = strconv.ParseInt(value, 10, 64)
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
			all = append(all, content{rule, key, n, stamp, sent})
		}
	}
	return all, held
}

// flight is a heap of the packets in transit; the next to arrive is first.
type flight []packet

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	return f[i].arrives < f[j].arrives || f[i].arrives == f[j].arrives && f[i].order < f[j].order
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }

// Push implements [heap.Interface].
func (f *flight) Push(p any) { *f = append(*f, p.(packet)) }

// Pop implements [heap.Interface].
func (f *flight) Pop() any {
	last := len(*f) - 1
	p := (*f)[last]
	(*f)[last] = packet{}
	*f = (*f)[:last]
	return p
}
