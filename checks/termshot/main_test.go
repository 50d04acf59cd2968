package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func shoot(tb testing.TB, text string) string {
	tb.Helper()
	var out bytes.Buffer
	if err := run(strings.NewReader(text), &out); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

func TestPicture(t *testing.T) {
	svg := shoot(t, "\x1b[1mbold\x1b[0m <a&b>\n\x1b[31;2mred\n still\x1b[22;39m plain\n\x1b[38;5;196m━━╸\x1b[38;2;1;2;3m│\x1b[m▶\x1b[92mx\x1b[K\n")
	for _, want := range []string{
		`width="137" height="116"`, // 12 columns, 4 lines
		` font-weight="bold">bold</text>`, `>&lt;a&amp;b&gt;</text>`,
		`fill="#ff7b72" opacity="0.6">red</text>`, `fill="#ff7b72" opacity="0.6">still</text>`, `fill="#d1d7e0">plain</text>`,
		`<rect x="18.0" y="85.0" width="16.8" height="6.0" fill="#ff0000"/>`, // both in one
		`fill="#010203"`, `<path `, `fill="#56d364">x</text>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
}

// Whatever a terminal showed, the picture is well-formed XML and the same each time.
func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`[ -~·━│▶]*`),
			rapid.StringMatching(`\x1b\[[0-9;]{0,12}[mKHx]?`),
			rapid.SampledFrom([]string{"\n", "\x1b", "\x1b[", "\x1b[38;5m", "\x1b[38;2;300;0m", "\x1b]0;"}),
		)).Draw(t, "parts")
		text := strings.Join(parts, "")
		var out, again bytes.Buffer
		if err := errors.Join(run(strings.NewReader(text), &out), run(strings.NewReader(text), &again)); err != nil {
			t.Fatal(err)
		}
		if out.String() != again.String() {
			t.Fatal("two pictures of one text")
		}
		dec := xml.NewDecoder(&out)
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v\n%s", err, again.String())
			}
		}
	})
}
