package aggregator_test

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// printer is a Publisher that prints the changes of the hot set.
type printer struct{}

func (printer) Publish(c published.Change) {
	for _, h := range c.Hot {
		fmt.Println("hot:", h.Text, h.Low)
	}
	for _, h := range c.Cool {
		fmt.Println("cool:", h.Text)
	}
}
func (printer) Refresh(int, []published.Hot)   {}
func (printer) Suspects(int, []published.Hot)  {}
func (printer) Instances([]published.Instance) {}

// A key is hot with the count that reaches the threshold, and cools when a whole window is
// below the exit for the cool-down.
func ExampleDetector() {
	file, err := config.Parse("hotparam.yaml", []byte(`
namespace: shop
rules:
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 200/s, hold: 2s, cool_down: 1s}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	d := aggregator.NewDetector(aggregator.DetectorConfig{Rules: file.Rules, Publisher: printer{}})

	text := []byte("GET /search?q=phone")
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	d.Advance(now)
	for range 3 { // instances
		d.Count(decode.Count{Rule: 0, Hash: rules.Hash(text), Text: text, N: 80, When: now})
	}
	for range 50 {
		now = now.Add(100 * time.Millisecond)
		d.Advance(now)
	}
	// Output:
	// hot: GET /search?q=phone 240
	// cool: GET /search?q=phone
}

// Readers share the detectors: each reader passes its counts to a Feed, and a count's key decides
// which detector counts it.
func ExampleShards() {
	file, err := config.Parse("hotparam.yaml", []byte(`
namespace: shop
rules:
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: 200/s
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	shards := aggregator.NewShards(aggregator.DetectorConfig{Rules: file.Rules, Publisher: printer{}}, 2, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		shards.Run()
	}()

	text := []byte("GET /search?q=phone")
	now := time.Now()
	feed := shards.Feed(0)
	feed.Begin()
	feed.Count(decode.Count{Hash: rules.Hash(text), Text: text, N: 300, When: now})
	feed.End(now, now, false)

	shards.Close()
	<-done
	fmt.Println(shards.Stats().Hot, "hot key")
	// Output:
	// hot: GET /search?q=phone 300
	// 1 hot key
}
