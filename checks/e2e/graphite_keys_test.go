package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

const (
	randomKeys = 10_000
	keyParts   = 20 // rules, each with a share of the keys: so many questions to Graphite

	// keysPatience allows for writing some 20,000 files on a machine that is busy with other
	// tests.
	keysPatience = 3 * time.Minute
)

// oddKeys have a meaning to StatsD, to Graphite or to a file system.
var oddKeys = []string{
	".", "..", "a.b", "/", "a/b", "*", "?", "[ab]", "{a,b}", "a,b", "(a)", `"a"`, "'a'", `\`, "|", "a:1|c", "a|#t:v", ":", "@", "#", ";a=b", "a;b=c",
	"~", "-", "--", "=", "_", "__", "_2E", "%", "%2E", "+", "&", "b=2&q=1", "b=2&b=2", " ", "  ", "a b", "\n", "\r\n", "\t", "\x00", "\xff", "\xc3", "\xed\xa0\x80",
	"é", "e\u0301", "日本語", "🙂", "__proto__", "constructor", "nan", "null", "1e9", "wsp", ".wsp", "sumSeries(a)",
	strings.Repeat("a", 251), strings.Repeat("a", 252), strings.Repeat(".", 83), strings.Repeat(".", 84), strings.Repeat("é", 600),
}

// sentKey is a key and the number of its counts.
type sentKey struct {
	key   string // the original key
	fixed string // the counted form: whole or cut
	n     int64
}

// Any key, whatever its bytes, comes back from Graphite with its count. It has its own name or,
// if that is too long for a file's name, the cut name that the request path uses.
func TestRandomKeysByGraphite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	graphite := real.Graphite(t)
	counter := real.StatsD(t, real.StatsDOptions{Carbon: graphite.Carbon()})
	ruleset := &rules.Rules{Namespace: "shop"}
	for i := range keyParts {
		ruleset.Rules = append(ruleset.Rules, rules.Rule{ID: fmt.Sprintf("part-%d", i)})
	}
	sink, err := statsdsink.New(statsdsink.Config{
		Rules: ruleset, Addrs: []string{counter.Addr()}, Strict: true, NoMeta: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	parts := make([]map[string]*sentKey, keyParts) // by the counted form
	seen := make(map[string]bool)
	cut := 0
	for i := range parts {
		parts[i] = make(map[string]*sentKey)
		for len(parts[i]) < randomKeys/keyParts {
			key := randomKey(random)
			if len(seen) < len(oddKeys) {
				key = oddKeys[len(seen)]
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			k := &sentKey{key: key, fixed: string(sink.Fit([]byte(key)))}
			parts[i][k.fixed] = k
			if k.fixed != k.key {
				cut++
				checkIdentity(t, k)
			}
		}
	}
	t.Logf("%d keys, %d of them cut", randomKeys, cut)

	// Twice, so that most keys have counts in several seconds.
	sendKeys(t, sink, counter, random, ruleset, parts)
	sendKeys(t, sink, counter, random, ruleset, parts)

	for i, part := range parts {
		head := "stats_counts." + ruleset.Rules[i].CountPrefix(ruleset.Namespace) + ".hot_param."
		var got map[string]int64
		want := int64(0)
		for _, k := range part {
			want += k.n
		}
		within(t, keysPatience, "all counts of "+head+"*", func() bool {
			sum := int64(0)
			got = make(map[string]int64)
			for _, series := range graphite.Render(head+"*", 10*time.Minute) {
				n := 0.0
				for _, p := range series.Points {
					n += p.Value
				}
				got[strings.TrimPrefix(series.Target, head)] = int64(n)
				sum += int64(n)
			}
			if sum < want {
				time.Sleep(200 * time.Millisecond) // it has work to do
			}
			return sum >= want
		})
		checkKeys(t, part, got)
	}
	for _, s := range graphite.Render("stats_counts.statsd.bad_lines_seen", 10*time.Minute) {
		for _, p := range s.Points {
			if p.Value != 0 {
				t.Errorf("StatsD could not read %v lines", p.Value)
			}
		}
	}
}

// checkKeys compares the encoded keys that came back with the keys that were sent.
func checkKeys(t *testing.T, part map[string]*sentKey, got map[string]int64) {
	t.Helper()
	if len(got) != len(part) {
		t.Errorf("%d keys came back, want %d", len(got), len(part))
	}
	for name, n := range got {
		text, err := wire.Strict.AppendDecoded(nil, []byte(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		k := part[string(text)]
		if k == nil {
			t.Errorf("%s came back as %q, which was not sent", name, text)
			continue
		}
		if n != k.n {
			t.Errorf("%q was counted %d times, came back with %d", k.key, k.n, n)
		}
	}
}

// checkIdentity checks that a key is cut only where it must be, and that no other key can have
// its name.
func checkIdentity(t *testing.T, k *sentKey) {
	t.Helper()
	if whole := wire.Strict.Append(nil, []byte(k.key)); len(whole) <= wire.Strict.Limit() {
		t.Errorf("%q was cut, though it has %d bytes when encoded", k.key, len(whole))
	}
	hash := sha256.Sum256([]byte(k.key))
	head, identity, _ := strings.Cut(k.fixed, "~"+hex.EncodeToString(hash[:16]))
	if identity != "" || len(head) == len(k.fixed) || !strings.HasPrefix(k.key, head) {
		t.Errorf("%q is counted as %q, want its beginning and its hash", k.key, k.fixed)
	}
}

// sendKeys counts each key some more times. It waits for StatsD, whose socket buffer is small.
func sendKeys(t *testing.T, sink collector.Sink, counter *real.StatsDServer, random *rand.Rand, rules *rules.Rules, parts []map[string]*sentKey) {
	t.Helper()
	const atOnce = 250 // at most 250 packets: that many lines
	for i, part := range parts {
		var counts []collector.Count
		flush := func() {
			sent := sink.Send(t.Context(), collector.Flush{Start: time.Now()}, counts)
			if sent.Err != nil || sent.TooLong > 0 || sent.Failed > 0 || sent.Lines < int64(len(counts)) {
				t.Fatalf("sent %+v", sent)
			}
			counts = counts[:0]
			counter.Drain()
		}
		for _, k := range part {
			n := 1 + random.Int64N(1<<random.IntN(40))
			k.n += n
			counts = append(counts, collector.Count{Rule: []byte(rules.Rules[i].ID), Text: []byte(k.fixed), N: n})
			if len(counts) == atOnce {
				flush()
			}
		}
		flush()
	}
}

// randomKey returns a key of 1 to 600 bytes: arbitrary bytes, bytes of a query, letters alone, or
// runes. Letters are not escaped, so those are the longest keys that stay whole.
func randomKey(random *rand.Rand) string {
	const query = "abcXYZ019-_=&?./%+:|@#,; ~*{}[]()'\"\\<>^$`!\t\n"
	const letters = "ABCXYZabcxyz0189-="
	length := 1 + random.IntN(600)
	if random.IntN(2) == 0 {
		length = 1 + length/6 // most of these stay whole
	}
	var key bytes.Buffer
	kind := random.IntN(4)
	for key.Len() < length {
		switch kind {
		case 0:
			key.WriteByte(byte(random.IntN(256)))
		case 1:
			key.WriteByte(query[random.IntN(len(query))])
		case 2:
			key.WriteByte(letters[random.IntN(len(letters))])
		default:
			key.WriteRune(rune(random.IntN(0x2FFFF)))
		}
	}
	return string(key.Bytes()[:length])
}
