package collector_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/rules"
)

// printer is a sink that prints counts.
type printer struct{ collector.CountsOnly }

func (printer) Send(_ context.Context, _ collector.Flush, counts []collector.Count) collector.Sent {
	for _, c := range counts {
		fmt.Printf("%s %s: %d\n", c.Rule, c.Text, c.N)
	}
	return collector.Sent{Lines: int64(len(counts))}
}

func (printer) Fit(text []byte) []byte { return text }

func (printer) Close() error { return nil }

// A sink sends counts anywhere; statsdsink and kafkasink have the usual ones.
func ExampleSink() {
	counts, err := collector.New(collector.Config{Sink: printer{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := []byte(rules.Key{Rule: "search-terms", Text: "GET /search?q=phone"}.String())
	for range 3 {
		counts.Add(rules.Hash(key), key, 1)
	}
	counts.Flush(context.Background(), time.Now()) // a program runs counts.Run instead
	// Output: search-terms GET /search?q=phone: 3
}
