package statsdsink_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/rules"
)

// A StatsD server other than hotparam's aggregator gets lines of counters only.
func ExampleNew() {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()

	ruleset := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{{ID: "search-terms"}}}
	sink, err := statsdsink.New(statsdsink.Config{Rules: ruleset, Addrs: []string{server.LocalAddr().String()}, NoMeta: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = sink.Close() }()
	counts, err := collector.New(collector.Config{Rules: ruleset, Sink: sink})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := []byte("search-terms GET /search?q=phone")
	counts.Add(rules.Hash(key), key, 3)
	counts.Flush(context.Background(), time.Now()) // a program runs counts.Run instead

	packet := make([]byte, 1500)
	_ = server.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, _, err := server.ReadFrom(packet)
	fmt.Println(string(packet[:n]), err)
	// Output: shop.search-terms.hot_param.GET%20/search?q=phone:3|c <nil>
}

// Each key goes to one of two aggregators, which share the work.
func ExampleConfig() {
	rules := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{{ID: "search-terms"}}}
	sink, err := statsdsink.New(statsdsink.Config{
		Rules:  rules,
		Addrs:  []string{"aggregator-1:8125", "tcp://aggregator-2:8125"},
		Spread: statsdsink.SpreadHash,
	})
	fmt.Println(sink != nil, err) // no connection is dialled before counts are sent
	// Output: true <nil>
}
