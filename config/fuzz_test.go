package config

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// For any bytes, Parse returns valid rules, or problems with places in the file, in its order.
func FuzzParse(f *testing.F) {
	for _, test := range badFiles {
		if len(test.source) < 1<<9 {
			f.Add([]byte(test.source))
		}
	}
	example, err := os.ReadFile("../deploy/hotparam.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(full))
	f.Add([]byte(good))
	f.Add([]byte(good + "aggregator: {redis: {url: redis://h, password_file: f}, lease: true}\nstatsd: {addresses: [a:1, b:1], spread: all}\nkafka: {tls: true, brokers: []}\n"))
	f.Add([]byte("aggregator: {source: graphite, listen: [a:1, unix:///s], readers: 2}\nstatsd: {encoding: strict, meta: false}\ngraphite: {url: https://h/, every: 'TZ=x', series: 'a.{name}', step: 2s, token: t, tls: {ca: c}}\n" + good))
	f.Add([]byte(rule("count: bytes", "by: {combinations: [q, page]}", "hot: [1MB/s, {share: 20%, min: 1KiB/10s}, {top: 3, min: 1, window: 1m}]",
		"except: [{values: {q: [a, 'b*']}, hot: 2MB/s, limit: 1KB/s}]", "allow: {q: x}", "block: [{page: 1}, {q: y}]")))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f.yaml", data)
		if err == nil {
			if err := file.Rules.Validate(); err != nil {
				t.Fatalf("Parse accepts what Validate refuses: %v", err)
			}
			return
		}
		var problems Problems
		if !errors.As(err, &problems) || len(problems) == 0 || file != nil {
			t.Fatalf("file %v, error %v", file, err)
		}
		lines := strings.Split(string(data), "\n")
		last := position{1, 1}
		for _, p := range problems {
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
				t.Fatalf("%d:%d is outside of the file: %s", p.Line, p.Column, p.Message)
			}
			if p.Line < last.line || p.Line == last.line && p.Column < last.column {
				t.Fatalf("%d:%d comes after %v", p.Line, p.Column, last)
			}
			last = position{p.Line, p.Column}
			if p.Message == "" || p.Hint == "" || p.File != "f.yaml" || strings.ContainsAny(p.Message+p.Hint, "\n\r\t\x1b") {
				t.Fatalf("%+v", p)
			}
		}
		if err := problems.WriteText(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}
