package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

// told is the content of a client's sample.
type told struct {
	name   string
	values []string
	rate   string // "": none
	tags   [][2]string
	when   int64 // 0: none
}

// dialects are the clients' encodings, each as its protocol documents it.
var dialects = map[string]func(*rapid.T, told) string{
	"etsy": func(_ *rapid.T, s told) string {
		return s.name + each(s)
	},
	"etsy, with samples of other types": func(t *rapid.T, s told) string {
		line := s.name
		for _, v := range s.values {
			line += rapid.SampledFrom([]string{"", ":320|ms", ":x|s|@0.5", ":-7|g"}).Draw(t, "other")
			line += each(told{values: []string{v}, rate: s.rate})
		}
		return line
	},
	"dogstatsd": func(t *rapid.T, s told) string {
		var fields []string
		if s.rate != "" {
			fields = append(fields, "|@"+s.rate)
		}
		if len(s.tags) > 0 {
			fields = append(fields, "|#"+tagged(s, ":"))
		}
		if s.when != 0 {
			fields = append(fields, fmt.Sprintf("|T%d", s.when))
		}
		fields = append(fields, rapid.SampledFrom([]string{"", "|c:2", "|c:ci-83c0", "|e:it-false,cn-api", "|card:low", "|x:1|"}).Draw(t, "field"))
		return s.name + ":" + strings.Join(s.values, ":") + "|c" + strings.Join(rapid.Permutation(fields).Draw(t, "order"), "")
	},
	"telegraf": func(_ *rapid.T, s told) string { return s.name + behind(s, ",", ",") + each(s) },
	"graphite": func(_ *rapid.T, s told) string { return s.name + behind(s, ";", ";") + each(s) },
	"librato":  func(_ *rapid.T, s told) string { return s.name + behind(s, "#", ",") + each(s) },
	"signalfx": func(t *rapid.T, s told) string {
		at := rapid.IntRange(0, len(s.name)).Draw(t, "at")
		return s.name[:at] + "[" + tagged(s, "=") + "]" + s.name[at:] + each(s)
	},
}

// each returns each value with a type of its own.
func each(s told) (samples string) {
	for _, v := range s.values {
		if samples += ":" + v + "|c"; s.rate != "" {
			samples += "|@" + s.rate
		}
	}
	return samples
}

// tagged returns the tags, joined as most clients do.
func tagged(s told, is string) string {
	var tags []string
	for _, t := range s.tags {
		tags = append(tags, t[0]+is+t[1])
	}
	return strings.Join(tags, ",")
}

// behind returns the tags after a name, if there are any.
func behind(s told, first, next string) (tags string) {
	for i, t := range s.tags {
		if i == 0 {
			tags += first
		} else {
			tags += next
		}
		tags += t[0] + "=" + t[1]
	}
	return tags
}

// A sample in any client's dialect is read as that sample, whatever its key.
func TestEveryDialectIsRead(t *testing.T) {
	for dialect, write := range dialects {
		t.Run(dialect, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				e := rapid.SampledFrom(encodings).Draw(t, "encoding")
				text := append(anyText(40).Draw(t, "text"), 'x')
				prefix := rapid.SampledFrom([]string{"shop", "shop.search-terms", "a.b_c.d"}).Draw(t, "prefix")
				say := told{name: string(wire.AppendKey([]byte(prefix), e, text)), when: rapid.SampledFrom([]int64{0, 0, 1656581400}).Draw(t, "when")}
				sum := 0.0
				for range rapid.IntRange(1, 5).Draw(t, "values") {
					v := float64(rapid.IntRange(0, 4000).Draw(t, "value")) / rapid.SampledFrom([]float64{1, 1, 4}).Draw(t, "part")
					say.values = append(say.values, strconv.FormatFloat(v, 'f', -1, 64))
					sum += v
				}
				rate := rapid.SampledFrom([]float64{0, 0, 1, 0.5, 0.3, 0.01}).Draw(t, "rate")
				if rate > 0 {
					say.rate = fmt.Sprint(rate)
					sum /= rate
				}
				for range rapid.IntRange(0, 3).Draw(t, "tags") {
					say.tags = append(say.tags, [2]string{rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "tag"), rapid.StringMatching(`[a-zA-Z0-9_./-]{1,8}`).Draw(t, "tag's value")})
				}
				line := write(t, say)
				l, err := wire.ParseLine([]byte(line))
				if err != nil || string(l.Prefix) != prefix || math.Abs(float64(l.N)+l.Frac-sum) > 1e-9*(1+sum) {
					t.Fatalf("%q is %+v, %v; want %v of prefix %q", line, l, err, sum, prefix)
				}
				if dialect == "dogstatsd" && l.When != say.when {
					t.Fatalf("%q is of %d", line, l.When)
				}
				if got, err := e.AppendDecoded(nil, l.Key); err != nil || !bytes.Equal(got, text) {
					t.Fatalf("%q has the key %q (%v), want %q", line, got, err, text)
				}
			})
		})
	}
}

func TestTagsAreCutOut(t *testing.T) {
	for name, want := range map[string]string{ // "": malformed
		"shop.hot_param.k":                       "shop k",
		"shop.hot_param.k,a=b,c=d":               "shop k",
		"shop.hot_param.k;a=b;c=d":               "shop k",
		"shop.hot_param.k#a=b,c=d":               "shop k",
		"shop.hot_param.k,a=[b]#c;d":             "shop k",
		"shop.hot_param.k,":                      "shop k",
		"shop.hot_param.k[a=b]":                  "shop k",
		"shop.hot_param.k[]":                     "shop k",
		"shop.hot_param.k[a=b]ey":                "shop key",
		"shop.hot_param.[a=b]k":                  "shop k",
		"[a=b]shop.hot_param.k":                  "shop k",
		"shop[a=b].rule[c=d].hot_param.k[e=f]ey": "shop.rule key",
		"shop.hot_[a=b]param.k":                  "shop k",
		"shop[a=b].hot_param.k,c=d":              "shop k",
		"shop[host=10.0.0.7:80].hot_param.k":     "shop k",
		"shop[a=.hot_param.x].hot_param.k":       "shop k",
		"shop.hot_param.k[a,b;c#d]ey":            "shop key",
		"shop[a=b].hot_param.":                   "",
		"shop.hot_param.,a=b":                    "",
		"shop.hot_param.[a=b]":                   "",
		"[shop].hot_param.k":                     "",
		"shop.hot_param.k[":                      "",
		"shop.hot_param.k]":                      "",
		"shop.hot_param.k[a]]":                   "",
		"shop.hot_param.k[[a]]":                  "",
		"shop.hot_param.k[a|b]":                  "",
		"shop.hot_param.k]a[":                    "",
		"shop.hot_param.keys\xff]":               "", // a carry from one byte to the next
	} {
		line := name + ":3|c"
		l, err := wire.ParseLine([]byte(line))
		if want == "" {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%q is %+v, %v", line, l, err)
			}
			continue
		}
		if got := string(l.Prefix) + " " + string(l.Key); err != nil || got != want || l.N != 3 {
			t.Errorf("%q is %q, %d, %v; want %q, 3", line, got, l.N, err, want)
		}
	}
}

// No byte hides another one from code that looks at eight at a time.
func TestEveryByteOfANameIsSeen(t *testing.T) {
	for pair := range 1 << 16 {
		a, b := byte(pair>>8), byte(pair)
		seen(t, string([]byte{'k', 'e', 'y', a, b, 's', '=', '1', '2'}))
	}
	for n := 1; n < 100; n++ { // wherever it stands
		for at := range n {
			for _, c := range ":,;#[]=\\" {
				key := []byte(strings.Repeat("k", n))
				key[at] = byte(c)
				seen(t, string(key))
			}
		}
	}
}

// seen checks that a key is read whole if it contains no separator, and only then.
func seen(t *testing.T, key string) {
	t.Helper()
	const head = "shop.hot_param."
	line := []byte(head + key + ":1|c")
	_, _, ok := wire.CutCount(line, head)
	l, err := wire.ParseLine(line)
	if whole := err == nil && string(l.Key) == key; whole == strings.ContainsAny(key, ":,;#[]") || ok && !whole {
		t.Fatalf("%q is %+v, %v, at a glance %v", line, l, err, ok)
	}
}

// Every line in the tables of docs/DIALECTS.md is read as documented.
func TestDialectsAreAsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/DIALECTS.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]error{
		"foreign": wire.ErrForeign, "not_counter": wire.ErrNotCounter, "negative": wire.ErrNegative,
		"event": wire.ErrEvent, "malformed": wire.ErrMalformed,
	}
	count := regexp.MustCompile(`^([0-9.]+)(?: at ([0-9]+))?$`)
	row := regexp.MustCompile("^\\| [^`]+ \\| `([^`]+)` \\| (.+) \\|$")
	counts, others := 0, make(map[string]int)
	_, tables, _ := strings.Cut(string(text), "\n## Lines that are counts\n")
	tables, _, _ = strings.Cut(tables, "\n## Transports\n")
	for line := range strings.Lines(tables) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasSuffix(line, "| Count |\n") || strings.HasSuffix(line, "| Reason |\n") {
			continue
		}
		cells := row.FindStringSubmatch(strings.TrimSpace(line))
		if cells == nil {
			t.Errorf("no row of a line and what it is: %s", line)
			continue
		}
		example, want := strings.ReplaceAll(cells[1], `\|`, "|"), cells[2]
		l, err := wire.ParseLine([]byte(example))
		if is := count.FindStringSubmatch(want); is != nil {
			counts++
			if got := strconv.FormatFloat(math.Round((float64(l.N)+l.Frac)*1e4)/1e4, 'f', -1, 64); err != nil || string(l.Prefix) != "shop.search" || string(l.Key) != "q=phone" || got != is[1] {
				t.Errorf("%q is %s, %+v, %v; documented as %s", example, got, l, err, want)
			}
			if is[2] == "" {
				is[2] = "0"
			}
			if fmt.Sprint(l.When) != is[2] {
				t.Errorf("%q is of %d; documented as %s", example, l.When, want)
			}
			continue
		}
		others[want]++
		if reasons[want] == nil || !errors.Is(err, reasons[want]) {
			t.Errorf("%q is %+v, %v; documented as %s", example, l, err, want)
		}
	}
	if counts < 10 || len(others) != len(reasons) {
		t.Errorf("%d lines that are counts, and lines that are %v", counts, others)
	}
}
