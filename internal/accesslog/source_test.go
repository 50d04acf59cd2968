package accesslog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func plain(b []byte) []byte { return b }

// gzipped and zstded write two members, or frames, which a reader that stops after the first
// would miss.
func gzipped(b []byte) []byte {
	var out bytes.Buffer
	for _, part := range [][]byte{b[:len(b)/3], b[len(b)/3:]} {
		w := gzip.NewWriter(&out)
		w.Write(part)
		w.Close()
	}
	return out.Bytes()
}

func zstded(b []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	defer w.Close()
	return w.EncodeAll(b[len(b)/3:], w.EncodeAll(b[:len(b)/3], nil))
}

// skippable returns text after a frame that holds no data, as pzstd writes it.
func skippable(b []byte) []byte {
	return append([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"), zstded(b)...)
}

var packings = map[string]func([]byte) []byte{"plain": plain, "gzip": gzipped, "zstd": zstded, "pzstd": skippable}

// A truncated log yields the good entries before its end, then the error. The other files are
// read all the same.
func TestBrokenInTheMiddle(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		text.WriteString(combinedLine(entry(i%60, i*7919%99991)))
	}
	other := writeFile(t, "other.log", []byte(combinedLine(entry(99, 0))))
	for _, c := range []struct {
		packing string
		damage  func([]byte) []byte
		want    string
	}{
		{"gzip", func(b []byte) []byte { return b[:len(b)*2/3] }, "gzip data is cut off"},
		{"zstd", func(b []byte) []byte { return b[:len(b)*2/3] }, "zstd data is cut off"},
		{"gzip", func(b []byte) []byte { return append(b, "garbage garbage"...) }, "gzip data cannot be unpacked"},
		{"zstd", func(b []byte) []byte { return append(b, "garbage garbage"...) }, "zstd data cannot be unpacked"},
		{"gzip", func(b []byte) []byte { b[len(b)-5] ^= 1; return b }, "gzip data cannot be unpacked"},
		{"zstd", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "zstd data cannot be unpacked"},
	} {
		t.Run(c.want, func(t *testing.T) {
			name := writeFile(t, "broken.log", c.damage(packings[c.packing]([]byte(text.String()))))
			got, stats, err := drain(t, []string{name, other}, Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if len(got) < 1000 || len(got) > 20_001 || int64(len(got)) != stats.Good || stats.Bad != 0 {
				t.Fatalf("%d entries, %+v", len(got), stats)
			}
			if got[len(got)-1] != entry(99, 0) {
				t.Error("the other file was not read")
			}
		})
	}

	t.Run("nothing before it", func(t *testing.T) {
		name := writeFile(t, "broken.log", gzipped([]byte(text.String()))[:12])
		if got, _, err := drain(t, []string{other, name}, Options{}); err == nil || len(got) > 0 {
			t.Errorf("%d entries, %v", len(got), err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, "a.log", nil)
	for _, c := range []struct {
		names []string
		o     Options
		want  string
	}{
		{nil, Options{}, "none is named"},
		{[]string{filepath.Join(dir, "missing.log")}, Options{}, "missing.log"},
		{[]string{dir}, Options{}, "is a directory"},
		{[]string{file, "-"}, Options{}, "give - alone"},
		{[]string{"-", "-"}, Options{}, "give - alone"},
		{[]string{file}, Options{Format: "xml"}, `format "xml"`},
		{[]string{file}, Options{Format: CSV}, "its columns have no names"},
		{[]string{file}, Options{Format: Caddy, Fields: &Fields{}}, "its fields are fixed"},
	} {
		if _, err := Open(c.names, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.names, err, c.want)
		}
	}
}

func TestFileGoneAfterOpen(t *testing.T) {
	name := writeFile(t, "a.log", []byte(combinedLine(entry(0, 0))))
	l, err := Open([]string{name}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	for e, err := range l.Entries(context.Background()) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v, %v", e, err)
		}
	}
}

// Standard input is streamed: an entry that is due comes before the next line is
// there, and the context ends a Read that waits for it.
func TestCancelEndsABlockedRead(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close() // ends the Read that was left behind
	l, err := Open([]string{"-"}, Options{Stdin: in, Reorder: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { out.Write([]byte(combinedLine(entry(0, 0)))) }()
	var got []error
	for _, err := range l.Entries(ctx) {
		got = append(got, err)
		cancel()
	}
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], context.Canceled) {
		t.Errorf("%v", got)
	}
}

func TestProgress(t *testing.T) {
	text := strings.Repeat(combinedLine(entry(0, 0)), 10_000)
	a, b := writeFile(t, "a.log", []byte(text)), writeFile(t, "b.log", zstded([]byte(text)))
	info, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	var done, total int64
	calls := 0
	o := Options{Progress: func(d, n int64) {
		if d < done {
			t.Errorf("went back from %d to %d", done, d)
		}
		done, total = d, n
		calls++
	}}
	if _, _, err := drain(t, []string{a, b}, o); err != nil {
		t.Fatal(err)
	}
	if want := int64(len(text)) + info.Size(); done != want || total != want || calls < 3 {
		t.Errorf("%d of %d in %d calls, want %d", done, total, calls, want)
	}

	done = 0
	o.Stdin = strings.NewReader(text)
	if _, _, err := drain(t, []string{"-"}, o); err != nil || done != int64(len(text)) || total != -1 {
		t.Errorf("standard input: %v, %d of %d", err, done, total)
	}
	f, err := os.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	done, o.Stdin = 0, f
	if _, _, err := drain(t, []string{"-"}, o); err != nil || done != int64(len(text)) || total != done {
		t.Errorf("standard input from a file: %v, %d of %d", err, done, total)
	}
}
