package statsdsource

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// framed is a framer's output for bytes that arrive in pieces of the given sizes, over and over.
// A size of 0 means as much as there is room for.
type framed struct {
	lines     []string // lines of a stream, without empty ones
	frames    []string
	tooLong   int64
	truncated bool
}

func frame(in []byte, sizes ...int) (got framed) {
	var f framer
	take := func(p []byte) {
		if f.framing == framingLengths {
			got.frames = append(got.frames, string(p))
			return
		}
		for line := range bytes.SplitSeq(p, []byte{'\n'}) {
			if len(line) > 0 {
				got.lines = append(got.lines, string(line))
			}
		}
	}
	for i := 0; len(in) > 0; i++ {
		room := f.room()
		if size := sizes[i%len(sizes)]; size > 0 {
			room = room[:min(size, len(room))]
		}
		n := copy(room, in)
		in = in[n:]
		f.filled(n)
		for p, ok := f.next(); ok; p, ok = f.next() {
			take(p)
		}
	}
	rest, truncated := f.last()
	if rest != nil {
		take(rest)
	}
	got.tooLong, got.truncated = f.takeTooLong(), truncated
	return got
}

// withLength returns a packet as DogStatsD's clients write it to a stream.
func withLength(packet string) string {
	return string(binary.LittleEndian.AppendUint32(nil, uint32(len(packet)))) + packet
}

func TestFramer(t *testing.T) {
	long := strings.Repeat("x", maxDatagram)
	for _, test := range []struct {
		name string
		in   string
		want framed
	}{
		{"nothing", "", framed{}},
		{"lines", "a:1|c\nb:2|c\n", framed{lines: []string{"a:1|c", "b:2|c"}}},
		{"no newline at the end", "a:1|c\nb:2|c", framed{lines: []string{"a:1|c", "b:2|c"}}},
		{"a short line alone", "a:1", framed{lines: []string{"a:1"}}},
		{"empty lines", "\n\n\n\n\na:1|c\n\n", framed{lines: []string{"a:1|c"}}},
		{"the longest line", long + "\na:1|c\n", framed{lines: []string{long, "a:1|c"}}},
		{"the longest line at the end", "a:1|c\n" + long, framed{lines: []string{"a:1|c", long}}},
		{"a line that is too long", "a:1|c\n" + strings.Repeat("x", 200_000) + "\nb:2|c\n", framed{lines: []string{"a:1|c", "b:2|c"}, tooLong: 1}},
		{"two of them", strings.Repeat(strings.Repeat("x", 70_000)+"\n", 2) + "b:2|c\n", framed{lines: []string{"b:2|c"}, tooLong: 2}},
		{"one that does not end", "a:1|c\n" + strings.Repeat("x", 200_000), framed{lines: []string{"a:1|c"}, tooLong: 1}},
		{"a line with a NUL", "a:1|c\n\x00\x00\x00\x00\x00\nb:2|c\n", framed{lines: []string{"a:1|c", "\x00\x00\x00\x00\x00", "b:2|c"}}},
		{"frames", withLength("a:1|c\nb:2|c") + withLength("c:3|c\n"), framed{frames: []string{"a:1|c\nb:2|c", "c:3|c\n"}}},
		{"an empty frame", withLength("") + withLength("a:1|c"), framed{frames: []string{"", "a:1|c"}}},
		{"the longest frame", withLength(long) + withLength("a:1|c"), framed{frames: []string{long, "a:1|c"}}},
		{"a frame that is too long", withLength(long+"x") + withLength("a:1|c"), framed{frames: []string{"a:1|c"}, tooLong: 1}},
		{"half a length", withLength("a:1|c") + "\x01\x00", framed{frames: []string{"a:1|c"}, truncated: true}},
		{"half a frame", withLength("a:1|c") + withLength("b:2|c")[:7], framed{frames: []string{"a:1|c"}, truncated: true}},
		{"half a frame that is too long", withLength("a:1|c") + "\x00\x00\x00\x7fxxx", framed{frames: []string{"a:1|c"}, tooLong: 1, truncated: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, sizes := range [][]int{{0}, {1}, {300, 1}, {4096}, {65_536}} {
				if got := frame([]byte(test.in), sizes...); !equalFramed(got, test.want) {
					t.Errorf("in pieces of %v: %.200v, want %.200v", sizes, got, test.want)
				}
			}
		})
	}
}

func equalFramed(a, b framed) bool {
	return slices.Equal(a.lines, b.lines) && slices.Equal(a.frames, b.frames) && a.tooLong == b.tooLong && a.truncated == b.truncated
}

// However the bytes are split, each line and frame of up to 64 KiB is returned whole, and longer
// ones are counted.
func TestFramerLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(1, 60), rapid.SampledFrom([]int{4095, 4096, 30_000, maxDatagram, maxBuffer, maxBuffer + 1, 150_000}))
		lengths := rapid.Bool().Draw(t, "lengths")
		var in []byte
		var want framed
		for i, n := range rapid.SliceOfN(size, 1, 12).Draw(t, "sizes") {
			packet := strings.Repeat(string(rune('a'+i)), n)
			switch {
			case lengths && n > maxDatagram, !lengths && n > maxBuffer-1:
				want.tooLong++
			case lengths:
				want.frames = append(want.frames, packet)
			default:
				want.lines = append(want.lines, packet)
			}
			if lengths {
				in = append(in, withLength(packet)...)
			} else {
				in = append(in, packet+"\n"...)
			}
		}
		pieces := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 5, 100, 4096, 50_000}), 1, 5).Draw(t, "pieces")
		if len(in) > 200_000 {
			pieces = append(pieces, 0) // bytes one by one take long
		}
		if got := frame(in, pieces...); !equalFramed(got, want) {
			t.Fatalf("%d lines, %d frames, %d too long, truncated %v; want %d, %d, %d", len(got.lines), len(got.frames), got.tooLong, got.truncated, len(want.lines), len(want.frames), want.tooLong)
		}
	})
}

// For any bytes the output is the same, however they are split, and no longer than the input.
func FuzzFramer(f *testing.F) {
	f.Add([]byte("a:1|c\nb:2|c\r\n\n"), uint8(1))
	f.Add([]byte(withLength("a:1|c")+withLength("")+"\x05\x00"), uint8(3))
	f.Add([]byte("\xff\xff\xff\x00aaa"), uint8(2))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00"), uint8(7))
	f.Add([]byte("abc\x00def\n"), uint8(4))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		whole, pieces := frame(in, 0), frame(in, int(size)+1, 1, 70)
		if !equalFramed(whole, pieces) {
			t.Fatalf("%q in pieces is %q, as a whole %q", in, fmt.Sprint(pieces), fmt.Sprint(whole))
		}
		out := 0
		for _, p := range append(whole.lines, whole.frames...) {
			out += len(p)
		}
		if out > len(in) {
			t.Fatalf("%d bytes out of %d", out, len(in))
		}
	})
}
