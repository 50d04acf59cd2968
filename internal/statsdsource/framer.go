package statsdsource

import (
	"bytes"
	"encoding/binary"
)

// framer cuts a stream into packets. Lines end with a newline. Clients of DogStatsD may
// instead send the length of a packet before it, in 4 bytes, the lowest first. The first
// bytes decide for the whole connection: a length that is accepted has 0 as its highest byte,
// and lines have none.
type framer struct {
	buf        []byte // bytes that were read
	start, end int    // of it that is not cut yet
	seen       int    // up to where it was searched for a newline
	framing    framing
	skip       int64 // bytes of a frame that is too long, still to come
	skipLine   bool  // the same of a line
	full       bool  // the last read left no room
	tooLong    int64 // lines and frames that were
}

type framing byte

const (
	framingUnknown framing = iota
	framingLines
	framingLengths
)

const (
	// lengthSize is the size of a length in bytes.
	lengthSize = 4
	// minBuffer is how much is read at a time from a connection that sends little.
	minBuffer = 4 << 10
	// maxBuffer holds the longest packet.
	maxBuffer = lengthSize + maxDatagram
)

// room returns where the next bytes are read to. It is never empty.
func (f *framer) room() []byte {
	if f.start > 0 {
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start, f.seen = 0, max(0, f.seen-f.start)
	}
	if f.end == len(f.buf) || f.full && len(f.buf) < maxBuffer {
		if len(f.buf) == maxBuffer { // a line that does not end
			f.end, f.seen, f.skipLine = 0, 0, true
			f.tooLong++
		} else {
			grown := make([]byte, min(max(minBuffer, 2*len(f.buf)), maxBuffer))
			copy(grown, f.buf[:f.end])
			f.buf = grown
		}
	}
	return f.buf[f.end:]
}

// filled records that n bytes were read.
func (f *framer) filled(n int) {
	f.end += n
	f.full = f.end == len(f.buf)
	if f.framing == framingUnknown && f.end-f.start >= lengthSize {
		f.framing = framingLines
		if f.buf[f.start+lengthSize-1] == 0 {
			f.framing = framingLengths
		}
	}
}

// next cuts off a packet, which is valid until room is called; false: there is none
// that is whole.
func (f *framer) next() (packet []byte, ok bool) {
	switch f.framing {
	case framingLines:
		return f.lines()
	case framingLengths:
		return f.frame()
	}
	return nil, false
}

// lines are all that are whole.
func (f *framer) lines() ([]byte, bool) {
	if f.skipLine {
		end := bytes.IndexByte(f.buf[f.start:f.end], '\n')
		if end < 0 {
			f.start = f.end
			return nil, false
		}
		f.skipLine = false
		f.start += end + 1
	}
	from, start := max(f.start, f.seen), f.start
	f.seen = f.end
	last := bytes.LastIndexByte(f.buf[from:f.end], '\n')
	if last < 0 {
		return nil, false
	}
	f.start = from + last + 1
	return f.buf[start:f.start], true
}

// keep has the last bytes of the lines that were cut off come again, with what follows.
func (f *framer) keep(n int) { f.start -= n }

// frame returns the next frame.
func (f *framer) frame() ([]byte, bool) {
	for {
		rest := f.buf[f.start:f.end]
		if f.skip > 0 {
			n := min(f.skip, int64(len(rest)))
			f.skip -= n
			f.start += int(n)
			if rest = rest[n:]; f.skip > 0 {
				return nil, false
			}
		}
		if len(rest) < lengthSize {
			return nil, false
		}
		n := int64(binary.LittleEndian.Uint32(rest))
		if n > maxDatagram {
			f.tooLong++
			f.skip = lengthSize + n
			continue
		}
		whole := lengthSize + int(n)
		if len(rest) < whole {
			return nil, false
		}
		f.start += whole
		return rest[lengthSize:whole], true
	}
}

// last returns what is left when the connection has ended. A line needs no newline then; the
// rest of a frame is truncated.
func (f *framer) last() (packet []byte, truncated bool) {
	rest := f.buf[f.start:f.end]
	f.start = f.end
	switch {
	case f.framing == framingLengths:
		return nil, len(rest) > 0 || f.skip > 0
	case f.skipLine:
		return nil, false // counted as too long
	}
	return rest, false
}

// takeTooLong returns how many lines and frames were too long since the last call.
func (f *framer) takeTooLong() int64 {
	n := f.tooLong
	f.tooLong = 0
	return n
}
