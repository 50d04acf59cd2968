package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// nasty are characters that a terminal interprets instead of showing them, and their neighbors.
var nasty = []rune("\x00\a\b\t\n\v\f\r\x1b\x7f\u0080\u0085\u009b\u009f\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\U000e0001\U0010fffdaé日😀\"\\")

func nastyText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(nasty), rapid.Rune()), 0, 12).Draw(t, "runes"))
	})
}

// shown fails the test if a terminal would interpret a part of the output.
func shown(t *rapid.T, what, output string) {
	for _, r := range strings.ReplaceAll(output, "\n", "") {
		if !unicode.IsPrint(r) {
			t.Fatalf("%s shows %U in %q", what, r, output)
		}
	}
}

// `list` makes any character visible, whether it is in a key, a rule or the name of an origin or
// an instance, and keeps the expected lines. JSON has the text unchanged.
func TestListEscapesOthersText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := nastyText()
		hot := published.Hot{Key: rules.Key{Rule: text.Draw(t, "rule"), Text: text.Draw(t, "key")}, Since: time.Now()}
		hot.Top = &published.Attribution{
			Routes:    []published.Origin{{Name: text.Draw(t, "route"), Count: 1}},
			Instances: []published.Origin{{Name: text.Draw(t, "instance"), Count: 1}},
			Callers:   []published.Origin{{Name: text.Draw(t, "caller"), Count: 1}},
		}
		members := []listed.Member{{Name: text.Draw(t, "sender"), Heard: time.Now(), RulesVersion: text.Draw(t, "version"), Program: text.Draw(t, "program"), Problem: text.Draw(t, "problem")}}
		controls := []published.Control{{Key: hot.Key, Action: published.ControlPin, Why: text.Draw(t, "why"), By: text.Draw(t, "by"), Claimed: text.Draw(t, "claimed")}}
		for _, c := range []struct {
			what  string
			rows  listed.Rows
			lines int
		}{{"list", listed.HotRows([]published.Hot{hot}, nil), 5}, {"suspects", listed.SuspectRows([]published.Hot{hot}), 2}, {"instances", listed.MemberRows(members), 2}, {"controls", listed.ControlRows(controls), 2}} {
			var table, out bytes.Buffer
			if err := c.rows.Table(&table, true); err != nil {
				t.Fatal(err)
			}
			shown(t, c.what, table.String())
			if n := strings.Count(table.String(), "\n"); n != c.lines {
				t.Fatalf("%s has %d lines, want %d: %q", c.what, n, c.lines, table.String())
			}
			if err := newJSON(&out).Encode(c.rows.Values); err != nil {
				t.Fatal(err)
			}
			shown(t, c.what+" --json", out.String())
			var plain bytes.Buffer
			enc := json.NewEncoder(&plain)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(c.rows.Values); err != nil {
				t.Fatal(err)
			}
			var got, want any
			if json.Unmarshal(out.Bytes(), &got) != nil || json.Unmarshal(plain.Bytes(), &want) != nil {
				t.Fatalf("%q is no JSON", out.String())
			}
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			if !bytes.Equal(g, w) {
				t.Fatalf("%s --json: %s, want %s", c.what, g, w)
			}
		}
	})
}

// Logs in both formats make all characters of their values visible, and so does the error at the
// end of a command.
func TestLogsEscapeOthersText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := nastyText()
		message, key, value := text.Draw(t, "message"), text.Draw(t, "key"), text.Draw(t, "value")
		for _, format := range []string{"text", "json"} {
			var out bytes.Buffer
			log, err := newLogger(&out, format, "info")
			if err != nil {
				t.Fatal(err)
			}
			log.With("scope", value).WithGroup("g").Warn(message, key, value, slog.Group("a", "b", value))
			shown(t, format, out.String())
			if n := strings.Count(out.String(), "\n"); n != 1 {
				t.Fatalf("%s: %d lines: %q", format, n, out.String())
			}
		}
	})
}
