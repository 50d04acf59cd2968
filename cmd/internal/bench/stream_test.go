package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// drain reads a stream and checks each batch.
func drain(t *rapid.T, source lineStream, w rules.Window, rules *rules.Rules) (counts []decode.Count) {
	d := decode.NewDecoder(rules, wire.Plain)
	last := time.Time{}
	for b := new(packetBatch); ; {
		b.reset()
		more, err := source.fill(b)
		if err != nil {
			t.Fatal(err)
		}
		pane := int64(-1)
		var got gathered
		b.each(func(packet []byte, at time.Time) {
			if n := bytes.Count(packet, []byte("\n")); n >= linesPerPacket {
				t.Fatalf("a packet of %d lines", n+1)
			}
			if at.Before(last) {
				t.Fatalf("%v comes after %v", at, last)
			}
			last = at
			if pane == -1 {
				pane = w.Index(at)
			}
			if w.Index(at) != pane {
				t.Fatal("a batch has events of two panes")
			}
			d.Packet(packet, at, &got)
		})
		if len(got.counts) != b.events {
			t.Fatalf("%d counts of %d events", len(got.counts), b.events)
		}
		counts = append(counts, got.counts...)
		if !more {
			return counts
		}
		if b.events == 0 {
			t.Fatal("an empty batch before the end")
		}
	}
}

// gathered is a reference that keeps the counts.
type gathered struct {
	exactCounts
	counts []decode.Count
}

func (g *gathered) Count(c decode.Count) {
	c.Text = slices.Clone(c.Text)
	g.counts = append(g.counts, c)
}

func TestGeneratedStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Hour}).Draw(t, "window")
		g := Generate{
			Zipf: 1.1, Keys: rapid.IntRange(1, 100).Draw(t, "keys"), Seed: rapid.Uint64().Draw(t, "seed"),
			Events: rapid.IntRange(1, 500).Draw(t, "events"), Windows: rapid.IntRange(1, 5).Draw(t, "windows"),
		}
		c := DetectConfig{Rules: LineRules(rules.Rate{N: 5, Per: window}), Generate: &g}
		w := rules.NewWindow(window)
		read := func() []decode.Count {
			source, closeStream, err := c.stream(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			defer closeStream()
			counts := drain(t, source, w, c.Rules)
			if done, total := source.progress(); done != total || int(total) != g.Events*g.Windows {
				t.Fatalf("%d of %d are done, want %d", done, total, g.Events*g.Windows)
			}
			return counts
		}
		counts := read()
		if len(counts) != g.Events*g.Windows {
			t.Fatalf("%d events, want %d", len(counts), g.Events*g.Windows)
		}
		end := time.Unix(0, streamStart).Add(time.Duration(g.Windows) * window)
		if first, last := counts[0].When, counts[len(counts)-1].When; first.UnixNano() != streamStart || !last.Before(end) {
			t.Fatalf("from %v to %v", first, last)
		}
		if !slices.EqualFunc(counts, read(), func(a, b decode.Count) bool {
			return string(a.Text) == string(b.Text) && a.When.Equal(b.When)
		}) {
			t.Fatal("the same seed gives another stream")
		}
	})
}

// The keys of a log are the keys that follow from the documentation.
func TestKeysOfALog(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom([]string{"all", "each", "q", "q,page"}).Draw(t, "by")
		var log strings.Builder
		var want []string
		at, last := 1_700_000_000_000, 0
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			at += rapid.SampledFrom([]int{0, 0, 1, 30, 2000}).Draw(t, "step")
			last = at
			pair := rapid.Custom(func(t *rapid.T) string {
				name := rapid.SampledFrom([]string{"q", "page", "token", "a%62", ""}).Draw(t, "name")
				return name + "=" + rapid.SampledFrom([]string{"1", "%41", "a+b", "", "ü%", strings.Repeat("x", 600)}).Draw(t, "value")
			})
			target := rapid.SampledFrom([]string{"/", "/search", "/se%61rch"}).Draw(t, "path")
			if pairs := rapid.SliceOfN(pair, 0, rapid.SampledFrom([]int{3, 14}).Draw(t, "most")).Draw(t, "pairs"); len(pairs) > 0 {
				target += "?" + strings.Join(pairs, "&")
			}
			fmt.Fprintf(&log, `{"time":%d,"method":"GET","uri":%q}`+"\n", last, target)
			want = append(want, exact.Keys(by, "GET", target)...)
		}
		name := filepath.Join(dir, "log")
		if err := os.WriteFile(name, []byte(log.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := accesslog.Open([]string{name}, accesslog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := config.FromFlags(by, "5/s", "")
		if err != nil {
			t.Fatal(err)
		}
		c := DetectConfig{Rules: rules, Log: opened}
		w := rules.Rules[0].Hot[0].Window()
		source, closeStream, err := c.stream(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		defer closeStream()
		var got []string
		for _, count := range drain(t, source, w, rules) {
			got = append(got, string(count.Text))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("keys\n%q\nwant\n%q", got, want)
		}
	})
}
