package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// In every list of a file an address is text, in either style of YAML.
func TestListsOfAddresses(t *testing.T) {
	addresses := func(f *File) []string { return f.StatsD.Addresses }
	brokers := func(f *File) []string { return f.Kafka.Brokers }
	listen := func(f *File) []string { return f.Aggregator.Listen }
	senders := func(f *File) (all []string) {
		for _, p := range f.Aggregator.Senders {
			all = append(all, p.String())
		}
		return all
	}
	for source, want := range map[string]struct {
		of   func(*File) []string
		list string
	}{
		"statsd: {addresses: [a:8125]}":                                                   {addresses, "a:8125"},
		"statsd: {addresses: [a:8125, b:8125], spread: hash}":                             {addresses, "a:8125 b:8125"},
		"statsd: {addresses: [ a:8125 ,b:8125,]}":                                         {addresses, "a:8125 b:8125"},
		"statsd: {addresses: [\n  a:8125, # ours\n  b:8125\n  ]}":                         {addresses, "a:8125 b:8125"},
		"statsd: {addresses: [tcp://a:8125, unix:///run/x.sock, udp://b:1]}":              {addresses, "tcp://a:8125 unix:///run/x.sock b:1"},
		"statsd: {addresses: ['a:8125', \"[::1]:8125\", c:1]}":                            {addresses, "a:8125 [::1]:8125 c:1"},
		"statsd: {addresses: [10.0.0.5:8125, 22:8125, true:1, null:2]}":                   {addresses, "10.0.0.5:8125 22:8125 true:1 null:2"},
		"statsd: {addresses: [é:8125, b:1]}":                                              {addresses, "é:8125 b:1"},
		"statsd:\n  addresses: [a:8125, \"[::1]:8125\"]":                                  {addresses, "a:8125 [::1]:8125"},
		"statsd:\n  addresses:\n    - a:8125\n    - \"[::1]:8125\"\n    - tcp://b:1":      {addresses, "a:8125 [::1]:8125 tcp://b:1"},
		"statsd:\n  addresses:\n  - '[2001:db8::1]:8125'":                                 {addresses, "[2001:db8::1]:8125"},
		"kafka: {brokers: [kafka-1:9092, kafka-2:9092]}":                                  {brokers, "kafka-1:9092 kafka-2:9092"},
		"kafka: {acks: all, brokers: [localhost:9092]}":                                   {brokers, "localhost:9092"},
		"kafka:\n  brokers:\n    - kafka-1:9092\n    - kafka-2:9092":                      {brokers, "kafka-1:9092 kafka-2:9092"},
		"aggregator: {listen: [:8125, tcp://:8125]}":                                      {listen, ":8125 tcp://:8125"},
		"aggregator: {listen: [\"[::]:8125\", 127.0.0.1:1]}":                              {listen, "[::]:8125 127.0.0.1:1"},
		"aggregator: {listen: :8125}":                                                     {listen, ":8125"},
		"aggregator: {trust: listed, senders: [2001:db8::/32, ::1, 10.0.0.7, fe80::/10]}": {senders, "2001:db8::/32 ::1/128 10.0.0.7/32 fe80::/10"},
		"aggregator:\n  trust: listed\n  senders:\n    - ::1\n    - 2001:db8::/32":        {senders, "::1/128 2001:db8::/32"},
	} {
		f, err := Parse("x", []byte(good+source+"\n"))
		if err != nil {
			t.Errorf("%s:\n%v", source, err)
		} else if got := strings.Join(want.of(f), " "); got != want.list {
			t.Errorf("%s: %s, want %s", source, got, want.list)
		}
	}
}

// In a list within braces a path parameter needs no quotes either.
func TestListsOfNames(t *testing.T) {
	f, err := Parse("x", []byte("rules: [{id: a, match: {route: '/u/{id}'}, by: [path:id, query:a:b, q], limit: 1/s}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := []rules.Param{{Source: rules.Path, Name: "id"}, {Name: "a:b"}, {Name: "q"}}
	if got := f.Rules.Rules[0].By.Names; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Elements that YAML does not read as text are refused, and the hint shows them with quotes.
func TestListsThatAreNoText(t *testing.T) {
	const quotes, fields = `an IPv6 address with a port needs quotes: "[::1]:8125"`, "write one word, or a text in quotes"
	for source, want := range map[string]string{
		"statsd: {addresses: [[::1]:8125]}":           "2:27: text right behind a list|" + quotes,
		"statsd:\n  addresses: [[::1]:8125]":          "3:20: text right behind a list|" + quotes,
		"statsd:\n  addresses:\n    - [::1]:8125":     "4:12: text right behind a list|" + quotes,
		"statsd: {addresses: [[fe80::1]:8125, b:1]}":  "2:31: text right behind a list|" + quotes,
		"aggregator:\n  listen: [::1]:8125":           "3:16: text right behind a list|" + quotes,
		"aggregator: {listen: [::1]:8125}":            "2:27: text right behind a list|" + quotes,
		"statsd: {addresses: [a: 8125]}":              "2:22: statsd.addresses: want text, found fields|" + fields,
		"statsd: {addresses: [a :8125]}":              "2:24: a colon without a space behind it|" + `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`,
		"statsd: {addresses: [\"a\":8125]}":           "2:22: statsd.addresses: want text, found fields|" + fields,
		"statsd: {addresses: [{a:8125}]}":             "2:24: a colon without a space behind it|" + `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`,
		"statsd: {addresses: [a:\"b\"]}":              "2:23: a colon without a space behind it|" + `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`,
		"secrets: {extra: [a], except: [b:[c]]}":      "2:33: a colon without a space behind it|" + `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`,
		"statsd: {addresses: [a:8125], spread:all}":   "2:37: a colon without a space behind it|" + `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`,
		"aggregator: {caps: {names:7, keys: [x, y]}}": "2:26: a colon without a space behind it|" + `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`,
	} {
		_, err := Parse("x", []byte(good+source+"\n"))
		var problems Problems
		errors.As(err, &problems)
		if len(problems) == 0 {
			t.Errorf("%s:\n%v", source, err)
			continue
		}
		p := problems[0]
		if got := fmt.Sprintf("%d:%d: %s|%s", p.Line, p.Column, p.Message, p.Hint); got != want {
			t.Errorf("%s: %s\nwant %s", source, got, want)
		}
	}
}

// A flow list within braces is read as the same list in block style.
func TestFlowListsAreReadAsBlockLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.StringMatching(`[a-z0-9][a-z0-9.-]{0,8}`)
		list := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("%s:%d", host.Draw(t, "host"), rapid.IntRange(1, 65535).Draw(t, "port"))
		}), 1, 6, rapid.ID).Draw(t, "list")
		space := rapid.SampledFrom([]string{"", " ", "  ", "\n    "})
		var flow strings.Builder
		for i, a := range list {
			if i > 0 {
				flow.WriteString(space.Draw(t, "before") + ",")
			}
			flow.WriteString(space.Draw(t, "behind") + a)
		}
		in, err := Parse("flow", []byte(good+"statsd: {spread: hash, addresses: ["+flow.String()+"]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		block, err := Parse("block", []byte(good+"statsd:\n  addresses:\n    - "+strings.Join(list, "\n    - ")+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(in.StatsD.Addresses, block.StatsD.Addresses) || !slices.Equal(in.StatsD.Addresses, list) {
			t.Fatalf("flow %q, block %q, want %q", in.StatsD.Addresses, block.StatsD.Addresses, list)
		}
	})
}
