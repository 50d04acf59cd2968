package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func testClient(tb testing.TB, url string) redis.UniversalClient {
	tb.Helper()
	client, err := hotkeys.NewClient(testenv.Patient(tb, url))
	must(tb, err)
	tb.Cleanup(func() { client.Close() })
	return client
}

func testStore(tb testing.TB) *Store {
	tb.Helper()
	s, err := NewStore(testClient(tb, testenv.Redis(tb).URL()), "shop")
	must(tb, err)
	return s
}

func testWriter(s *Store, edit func(*Config)) *Writer {
	c := Config{Store: s, Owner: "statsd", InOffice: func() bool { return true }, Keep: 7 * 24 * time.Hour, Memory: 64 << 20}
	if edit != nil {
		edit(&c)
	}
	return NewWriter(c)
}

// traffic is what a detector reports of random counts, and the truth.
type traffic struct {
	random *rand.Rand
	keys   int
	truth  map[int64]map[string]int64 // by second
}

func newTraffic(keys int) *traffic {
	return &traffic{rand.New(rand.NewPCG(1, 2)), keys, make(map[int64]map[string]int64)}
}

// second returns what a detector reports that lists the keys with at least 10 counts.
func (f *traffic) second(at int64) []aggregator.Tops {
	counts := make(map[string]int64)
	t := aggregator.Tops{Rule: "search", Unit: rules.Requests, Second: at, Span: 1, Other: 9}
	for i := range f.keys {
		text := fmt.Sprintf("GET /search?q=%d", i)
		n := f.random.Int64N(40)
		counts[text] = n
		if n < 10 {
			t.RestLow += n
		} else {
			t.Keys = append(t.Keys, aggregator.Top{Text: text, Low: n, High: n})
		}
	}
	t.RestHigh = t.RestLow
	f.truth[at] = counts
	return []aggregator.Tops{t}
}

// run adds seconds from a time on, and writes each.
func (f *traffic) run(tb testing.TB, w *Writer, from int64, seconds int) {
	tb.Helper()
	for i := range int64(seconds) {
		w.Add(f.second(from + i))
		w.step(tb.Context())
		if failing := w.Stats().Failing; failing != "" {
			tb.Fatal(failing)
		}
	}
}

// between returns the true counts of a time.
func (f *traffic) between(from, to int64) map[string]int64 {
	sums := make(map[string]int64)
	for at := from; at < to; at++ {
		for key, n := range f.truth[at] {
			sums[key] += n
		}
	}
	return sums
}

// check compares a view with the truth, column by column.
func (f *traffic) check(tb testing.TB, v *View) {
	tb.Helper()
	type place struct {
		key    string
		column int
	}
	cells := make(map[place]Cell)
	total := make(map[int]int64)
	for _, r := range v.Rows {
		for _, c := range r.Cells {
			cells[place{r.Route + "?" + r.Key, c.Column}] = c
			total[c.Column] += c.Low
		}
	}
	for _, r := range v.Rest {
		for _, c := range r.Cells {
			total[c.Column] += c.Low
		}
	}
	for column := range int((v.To - v.From + v.Step - 1) / v.Step) {
		from := v.From + int64(column)*v.Step
		sum := int64(0)
		for key, n := range f.between(from, from+v.Step) {
			sum += n
			c, listed := cells[place{key, column}]
			if listed && (n < c.Low || n > c.High) {
				tb.Fatalf("column %d at %d (step %d): %s counts %d, not %d to %d", column, from, v.Step, key, n, c.Low, c.High)
			}
		}
		if total[column] != sum {
			tb.Fatalf("column %d at %d (step %d) adds up to %d, truly %d", column, from, v.Step, total[column], sum)
		}
	}
}

func read(tb testing.TB, s *Store, from, to int64, columns int) *View {
	tb.Helper()
	v, err := s.Read(tb.Context(), Query{From: time.Unix(from, 0), To: time.Unix(to, 0), Columns: columns})
	must(tb, err)
	return v
}
