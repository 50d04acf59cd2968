package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

func TestHeldBackGolden(t *testing.T) {
	const want = "shop.search.hot_held.GET%20/search?page&q:600|c"
	line := wire.AppendHeldBack(nil, wire.Plain, "shop.search", []byte("GET /search?page&q"), 600)
	if string(line) != want {
		t.Errorf("the line is %q, want %q", line, want)
	}
	if _, err := wire.ParseLine(line); !errors.Is(err, wire.ErrForeign) {
		t.Errorf("as a count it is %v, want foreign", err)
	}
}

func TestHeldBackRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(t, "group")
		n := rapid.Int64Range(0, wire.MaxCount).Draw(t, "n")
		line := wire.AppendHeldBack(nil, wire.Plain, "shop.x", group, n)
		if bytes.ContainsAny(line, "\n\x00") || !wire.IsHeldBack(line) || wire.IsOrigin(line) {
			t.Fatalf("%q is no held-back line", line)
		}
		got, err := wire.ParseHeldBack(line)
		if err != nil {
			t.Fatal(err)
		}
		text, err := wire.Plain.AppendDecoded(nil, got.Group)
		if err != nil || !bytes.Equal(text, group) || got.N != n || string(got.Prefix) != "shop.x" {
			t.Fatalf("%q became %+v with %q, %v", line, got, text, err)
		}
	})
}

func FuzzParseHeldBack(f *testing.F) {
	f.Add([]byte("shop.search.hot_held.GET%20/search?page&q:600|c"))
	f.Add([]byte("shop.search.hot_held.~rest:6|c"))
	f.Add([]byte(".hot_held.x:1|c"))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := wire.ParseHeldBack(line)
		if err != nil {
			return
		}
		if h.N < 0 || h.N > wire.MaxCount || len(h.Prefix) == 0 || len(h.Group) == 0 {
			t.Errorf("%q became %+v", line, h)
		}
	})
}

// The sender and the reader of groups agree by the mark alone.
func TestGroupsMark(t *testing.T) {
	ruleset := func(kind rules.ThresholdKind, id string, paramsOnly bool) *rules.Rules {
		return &rules.Rules{Namespace: "shop", Rules: []rules.Rule{{ID: id, ParamsOnly: paramsOnly, Hot: []rules.Threshold{{Kind: kind}}}}}
	}
	share := wire.GroupsMark(ruleset(rules.Share, "a", false))
	if share == 0 || share != wire.GroupsMark(ruleset(rules.Share, "a", false)) {
		t.Errorf("a share has the mark %d, and not the same each time", share)
	}
	if share == wire.GroupsMark(ruleset(rules.Share, "b", false)) || share == wire.GroupsMark(ruleset(rules.Share, "a", true)) {
		t.Error("other rules have the same mark")
	}
	if got := wire.GroupsMark(ruleset(rules.Jump, "a", false)); got != 0 {
		t.Errorf("without a share the mark is %d", got)
	}
}
