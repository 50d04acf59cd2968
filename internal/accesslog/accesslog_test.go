package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// entry returns a request of one second, identified by its number.
func entry(second, number int) Entry {
	return Entry{
		Time:   midnight.Add(time.Duration(second) * time.Second),
		Method: "GET", Target: fmt.Sprintf("/a?n=%d", number), Addr: "192.0.2.1", Status: 200, Bytes: 512,
	}
}

func combinedLine(e Entry) string {
	return fmt.Sprintf("%s - - [%s] \"%s %s HTTP/1.1\" %d %d\n", e.Addr, e.Time.Format("02/Jan/2006:15:04:05 -0700"), e.Method, e.Target, e.Status, e.Bytes)
}

func jsonLine(e Entry) string {
	return fmt.Sprintf("{\"time\":%q,\"remote_addr\":%q,\"method\":%q,\"uri\":%q,\"status\":%d,\"bytes\":%d}\n",
		e.Time.Format(time.RFC3339Nano), e.Addr, e.Method, e.Target, e.Status, e.Bytes)
}

func writeFile(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// drain reads a log to its end.
func drain(t interface{ Helper() }, names []string, o Options) ([]Entry, Stats, error) {
	t.Helper()
	l, err := Open(names, o)
	if err != nil {
		return nil, Stats{}, err
	}
	var all []Entry
	for e, err := range l.Entries(context.Background()) {
		if err != nil {
			return all, l.Stats(), err
		}
		all = append(all, e)
	}
	return all, l.Stats(), nil
}

func TestFilesAndStandardInput(t *testing.T) {
	for _, format := range []struct {
		name string
		line func(Entry) string
	}{{"combined", combinedLine}, {"json", jsonLine}} {
		for packing, pack := range packings {
			t.Run(format.name+" "+packing, func(t *testing.T) {
				in := []Entry{entry(2, 0), entry(1, 1), entry(2, 2), entry(1, 3)}
				var text strings.Builder
				for _, e := range in {
					text.WriteString(format.line(e))
				}
				packed := pack([]byte(text.String()))

				// The file's name says nothing about its format.
				got, stats, err := drain(t, []string{writeFile(t, "log.txt", packed)}, Options{})
				if want := []Entry{in[1], in[3], in[0], in[2]}; err != nil || !slices.Equal(got, want) {
					t.Errorf("file: %v\ngot  %v\nwant %v", err, got, want)
				}
				if stats.Good != 4 || stats.Bad != 0 {
					t.Errorf("file: %+v", stats)
				}

				got, stats, err = drain(t, []string{"-"}, Options{Stdin: bytes.NewReader(packed)})
				if want := []Entry{in[1], in[3], in[0], in[2]}; err != nil || !slices.Equal(got, want) {
					t.Errorf("standard input: %v\ngot  %v\nwant %v", err, got, want)
				}
				if stats.Good != 4 || stats.Bad != 0 || stats.Disorder != (Disorder{}) {
					t.Errorf("standard input: %+v", stats)
				}

				got, stats, err = drain(t, []string{"-"}, Options{Stdin: bytes.NewReader(packed), Reorder: -1})
				if err != nil || !slices.Equal(got, in) {
					t.Errorf("standard input as it comes: %v\ngot  %v\nwant %v", err, got, in)
				}
				if want := (Disorder{Late: 2, By: time.Second}); stats.Good != 4 || stats.Disorder != want {
					t.Errorf("standard input as it comes: %+v", stats)
				}
			})
		}
	}
}

func TestNothingGoodIsAnError(t *testing.T) {
	good := writeFile(t, "good.log", []byte(combinedLine(entry(0, 0))))
	for _, c := range []struct {
		name, text string
		format     Format
		want       []string
	}{
		{"empty", "", Auto, []string{"empty", "combined", "JSON lines"}},
		{"blank", "\n\n", Auto, []string{"empty", "combined", "JSON lines"}},
		{"something else", "\nhello\x07\nworld\n", Auto, []string{"none of its 2 lines", "line 2", `hello\a`, errHost.Error(), "set to combined or json"}},
		{"not JSON", combinedLine(entry(0, 0)), JSON, []string{"none of its 1 lines", "JSON lines", "auto or combined"}},
		{"not combined", jsonLine(entry(0, 0)), Combined, []string{"none of its 1 lines", "combined", "auto or json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for packing, pack := range packings {
				name := writeFile(t, "test.log", pack([]byte(c.text)))
				got, _, err := drain(t, []string{good, name}, Options{Format: c.format})
				_, _, stdinErr := drain(t, []string{"-"}, Options{Format: c.format, Stdin: bytes.NewReader(pack([]byte(c.text)))})
				if err == nil || stdinErr == nil || len(got) > 0 {
					t.Fatalf("%s: %d entries, %v, %v", packing, len(got), err, stdinErr)
				}
				if c.format == Auto && !strings.Contains(err.Error(), name) || !strings.Contains(stdinErr.Error(), "standard input") {
					t.Errorf("%s: the source is not named: %v; %v", packing, err, stdinErr)
				}
				for _, want := range c.want {
					if !strings.Contains(stdinErr.Error(), want) {
						t.Errorf("%s: %v\ndoes not say %q", packing, stdinErr, want)
					}
				}
			}
		})
	}
}

func TestEntriesOnce(t *testing.T) {
	l, err := Open([]string{"-"}, Options{Stdin: strings.NewReader(combinedLine(entry(0, 0)))})
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	for range 2 {
		for _, err := range l.Entries(context.Background()) {
			errs = append(errs, err)
		}
	}
	if len(errs) != 2 || errs[0] != nil || errs[1] == nil {
		t.Errorf("%v", errs)
	}
}

func TestStopEarly(t *testing.T) {
	text := combinedLine(entry(0, 0)) + combinedLine(entry(0, 1))
	name := writeFile(t, "a.log", []byte(text))
	for _, source := range []string{name, "-"} {
		l, err := Open([]string{source}, Options{Stdin: strings.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range l.Entries(context.Background()) {
			if n++; err != nil {
				t.Error(err)
			}
			break
		}
		if n != 1 {
			t.Errorf("%s: %d entries", source, n)
		}
	}
}

func TestCancelled(t *testing.T) {
	text := combinedLine(entry(0, 0)) + combinedLine(entry(0, 1))
	name := writeFile(t, "a.log", []byte(text))
	for _, source := range []string{name, "-"} {
		for _, after := range []int{0, 1} { // entries
			ctx, cancel := context.WithCancel(context.Background())
			if after == 0 {
				cancel()
			}
			l, err := Open([]string{source}, Options{Stdin: strings.NewReader(text)})
			if err != nil {
				t.Fatal(err)
			}
			var got []error
			for _, err := range l.Entries(ctx) {
				got = append(got, err)
				cancel()
			}
			if len(got) != after+1 || !errors.Is(got[after], context.Canceled) {
				t.Errorf("%s, cancelled after %d: %v", source, after, got)
			}
			cancel()
		}
	}
}
