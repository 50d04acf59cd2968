package accesslog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// The entries of all files come in the order of time. Entries of equal times come in the order of
// the files, then of the lines.
func TestSortedAndStable(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var names []string
		var want []Entry
		for f := range rapid.IntRange(1, 4).Draw(t, "files") {
			line := combinedLine
			if rapid.Bool().Draw(t, "json") {
				line = jsonLine
			}
			var text strings.Builder
			for _, second := range rapid.SliceOfN(rapid.IntRange(0, 9), 1, 50).Draw(t, "seconds") {
				e := entry(second, len(want))
				want = append(want, e)
				text.WriteString(line(e))
			}
			name := filepath.Join(dir, fmt.Sprint(f))
			if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		slices.SortStableFunc(want, func(a, b Entry) int { return a.Time.Compare(b.Time) })

		l, err := Open(names, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []Entry
		for e, err := range l.Entries(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

// Text that fills several blocks is kept unchanged.
func TestSortedKeepsText(t *testing.T) {
	var s sorted
	const n = 20
	for i := range n {
		target := "/" + strings.Repeat(string(rune('a'+i)), MaxLine-i)
		s.add(&parsedLine{nanos: int64(n - i), method: []byte("GET"), target: []byte(target), status: 999, bytes: int64(i) << 40})
	}
	i := n
	for e := range s.entries() {
		i--
		want := "/" + strings.Repeat(string(rune('a'+i)), MaxLine-i)
		if e.Time.UnixNano() != int64(n-i) || e.Method != "GET" || e.Addr != "" || e.Status != 999 || e.Bytes != int64(i)<<40 || e.Target != want {
			t.Errorf("entry %d: %v, %s, %q, %d, %d bytes", i, e.Time, e.Method, e.Addr, e.Status, len(e.Target))
		}
	}
	if i != 0 || len(s.blocks) < 2 {
		t.Errorf("%d entries are missing, %d blocks", i, len(s.blocks))
	}
	if size := unsafe.Sizeof(record{}); size != 32 {
		t.Errorf("a record takes %d bytes, the documentation says 32", size)
	}
}

// More requests than a page holds, with few different times, come back in order.
func TestSortedOverPages(t *testing.T) {
	var s sorted
	const n, times = 3*pageSize + 1, 7
	for i := range n {
		s.add(&parsedLine{nanos: int64(i * 5 % times), method: []byte("GET"), target: fmt.Appendf(nil, "/%07d", i)})
	}
	got, last := 0, Entry{Time: time.Unix(-1, 0)}
	for e := range s.entries() {
		if got++; e.Time.Before(last.Time) || e.Time.Equal(last.Time) && e.Target <= last.Target {
			t.Fatalf("%+v after %+v", e, last)
		}
		last = e
	}
	if got != n {
		t.Errorf("%d entries, want %d", got, n)
	}
}
