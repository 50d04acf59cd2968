package statsdsource

import (
	"bytes"
	"encoding/binary"
)

// framer splits a stream into packets. Lines end with a newline. Clients of DogStatsD may
// instead send the length of a packet before it, as 4 bytes in little-endian order. The first
// bytes decide for the whole connection: the highest byte of an acceptable length is 0, and
// lines have no such byte.
type framer struct {
	buf        []byte // bytes that were read
	start, end int    // range of buf that has not been returned
	seen       int    // end of the bytes that were searched for a newline
	framing    framing
	skip       int64 // bytes still to come of a frame that is too long
	skipLine   bool  // the current line is too long; skip the rest of it
	full       bool  // the last read left no room
	tooLong    int64 // number of lines and frames that were too long
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
	// minBuffer is the first size of a connection's buffer.
	minBuffer = 4 << 10
	// maxBuffer has room for the longest packet.
	maxBuffer = lengthSize + maxDatagram
)

// room returns the buffer for the next read. It is never empty.
func (f *framer) room() []byte {
	if f.start > 0 {
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start, f.seen = 0, max(0, f.seen-f.start)
	}
	if f.end == len(f.buf) || f.full && len(f.buf) < maxBuffer {
		if len(f.buf) == maxBuffer { // a line without an end
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

// next returns the next packet, which is valid until room is called, and false if no whole
// packet is left.
func (f *framer) next() (packet []byte, ok bool) {
	switch f.framing {
	case framingLines:
		return f.lines()
	case framingLengths:
		return f.frame()
	}
	return nil, false
}

// lines returns all whole lines.
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

// unread makes the last n bytes of the lines be returned again, with the bytes that follow.
func (f *framer) unread(n int) { f.start -= n }

// frame returns the next frame.
func (f *framer) frame() ([]byte, bool) {
	for {
		pending := f.buf[f.start:f.end]
		if f.skip > 0 {
			n := min(f.skip, int64(len(pending)))
			f.skip -= n
			f.start += int(n)
			if pending = pending[n:]; f.skip > 0 {
				return nil, false
			}
		}
		if len(pending) < lengthSize {
			return nil, false
		}
		n := int64(binary.LittleEndian.Uint32(pending))
		if n > maxDatagram {
			f.tooLong++
			f.skip = lengthSize + n
			continue
		}
		whole := lengthSize + int(n)
		if len(pending) < whole {
			return nil, false
		}
		f.start += whole
		return pending[lengthSize:whole], true
	}
}

// last returns the rest when the connection has ended. A line then needs no newline. The rest of
// a frame is truncated.
func (f *framer) last() (packet []byte, truncated bool) {
	pending := f.buf[f.start:f.end]
	f.start = f.end
	switch {
	case f.framing == framingLengths:
		return nil, len(pending) > 0 || f.skip > 0
	case f.skipLine:
		return nil, false // counted as too long
	}
	return pending, false
}

// takeTooLong returns the number of lines and frames since the last call that were too long.
func (f *framer) takeTooLong() int64 {
	n := f.tooLong
	f.tooLong = 0
	return n
}
