package accesslog

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBadLines(t *testing.T) {
	good := combinedLine(entry(0, 0))
	first := writeFile(t, "first.log", []byte("\n"+good+"bad\x1b[31m \xff"+strings.Repeat("é", 200)+"\n"+good))
	second := writeFile(t, "second.log", []byte(strings.Repeat("worse \n", 9)+good))

	got, stats, err := drain(t, []string{first, second}, Options{})
	if err != nil || len(got) != 3 || stats.Good != 3 || stats.Bad != 10 || len(stats.BadLines) != 5 {
		t.Fatalf("%d entries, %v, %+v", len(got), err, stats)
	}
	want := BadLine{File: first, Line: 3, Reason: errClock.Error(), Excerpt: `bad\x1b[31m \xff` + strings.Repeat("é", 120-16-1) + "…"}
	if b := stats.BadLines[0]; b != want || utf8.RuneCountInString(b.Excerpt) != maxExcerpt {
		t.Errorf("got  %+v\nwant %+v", b, want)
	}
	if b, want := stats.BadLines[4], (BadLine{File: second, Line: 4, Reason: errHost.Error(), Excerpt: "worse"}); b != want {
		t.Errorf("got  %+v\nwant %+v", b, want)
	}
}

func TestExcerpt(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"GET /":                           "GET /",
		"\x00\t\u202e":                    `\x00\t\u202e`,
		`"\`:                              `"\`,
		strings.Repeat("a", 120):          strings.Repeat("a", 120),
		strings.Repeat("a", 121):          strings.Repeat("a", 119) + "…",
		strings.Repeat("a", 118) + "\x00": strings.Repeat("a", 118) + "…",
	} {
		if got := excerpt([]byte(in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
