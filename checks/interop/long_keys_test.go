package interop

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// A program can name a long key as the middleware does.
func TestLongKeys(t *testing.T) {
	keys := longKeys(1000)
	for _, e := range []wire.Encoding{wire.Plain, wire.Strict} {
		t.Run(e.String(), func(t *testing.T) {
			output := statsdClients(t).run(t, example("long_keys.py"), strings.Join(keys, "\n")+"\n", e.String())
			names := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
			if len(names) != len(keys) {
				t.Fatalf("%d names of %d keys", len(names), len(keys))
			}
			cut := 0
			for i, key := range keys {
				text := e.Fit(base.CutKey([]byte(key), rules.MaxText))
				if want := string(e.Append(nil, text)); names[i] != want {
					t.Errorf("%s is %q, want %q", key, names[i], want)
				}
				if string(text) != key {
					cut++
				}
			}
			if cut == 0 || cut == len(keys) {
				t.Errorf("%d of %d keys were cut", cut, len(keys))
			}
		})
	}
}

// longKeys returns keys of up to 700 bytes: of letters alone, of bytes that must be escaped, and
// of both.
func longKeys(n int) (keys []string) {
	random := rand.New(rand.NewPCG(7, 7))
	for range n {
		var value strings.Builder
		letters := random.IntN(3)
		for size := random.IntN(700); value.Len() < size; {
			if random.IntN(2) < letters {
				value.WriteByte("aZ0-_.~"[random.IntN(7)])
			} else {
				value.WriteRune([]rune(" %é日😀")[random.IntN(5)])
			}
		}
		keys = append(keys, rules.Text("GET /search", rules.Param{Name: "q", Value: value.String()}))
	}
	return keys
}
