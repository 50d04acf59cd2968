package accesslog

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// A log that is kept can be read again and again. It is sorted even if it came through standard
// input, out of order by more than the buffer holds.
func TestKept(t *testing.T) {
	in := []Entry{entry(100, 0), entry(1, 1), entry(50, 2), entry(1, 3)}
	var text strings.Builder
	for _, e := range in {
		text.WriteString(jsonLine(e))
	}
	text.WriteString("no line\n")
	log, err := Open([]string{"-"}, Options{Stdin: strings.NewReader(text.String())})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := log.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var got []Entry
		for e, err := range kept.Entries(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if want := []Entry{in[1], in[3], in[2], in[0]}; !slices.Equal(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	if s := kept.Stats(); s.Good != 4 || s.Bad != 1 || kept.Broken() != nil || kept.IsStream() {
		t.Errorf("%+v, %v", s, kept.Broken())
	}
	if _, err := log.Keep(t.Context()); err == nil {
		t.Error("it can be read twice")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range kept.Entries(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

func TestKeptIsBroken(t *testing.T) {
	stored := gzipped(bytes.Repeat([]byte(jsonLine(entry(1, 1))), 5000))
	log, err := Open([]string{"-"}, Options{Stdin: bytes.NewReader(stored[:len(stored)-20])})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := log.Keep(t.Context())
	if err != nil || kept.Broken() == nil || kept.Stats().Good == 0 {
		t.Errorf("%v, %v", err, kept)
	}
}
