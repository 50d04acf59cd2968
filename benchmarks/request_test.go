package benchmarks

import (
	"context"
	"hash/maphash"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	datadog "github.com/DataDog/datadog-go/v5/statsd"
	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	"github.com/alibaba/sentinel-golang/logging"
	cactus "github.com/cactus/go-statsd-client/v5/statsd"
	aegis "github.com/go-kratos/aegis/hotkey"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// BenchmarkRequest measures the cost of a request whose key is not hot: two parameters, 100,000
// values by Zipf's law. hotparam, floor and parse+encode start with the raw query. The others get
// a ready-made key. Background work of a client, such as sending, is included in the figure, since
// there is one processor.
func BenchmarkRequest(b *testing.B) {
	queries := texts("q=%d&b=2", zipf(distinct))
	values := texts("%d", zipf(distinct))
	names := texts("shop.terms.hot_param.b=2&q=%d", zipf(distinct))

	b.Run("hotparam", func(b *testing.B) {
		g := newGuard(b, &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 1}, Mode: rules.ModeLimit}, queries)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			g.Check(search(queries[i%draws]))
		}
	})
	b.Run("floor", func(b *testing.B) {
		seed := maphash.MakeSeed()
		counts := make(map[uint64]*atomic.Int64, distinct)
		var buf [64]byte
		for _, q := range queries {
			counts[maphash.Bytes(seed, yardstick.SortTwo(buf[:0], q))] = new(atomic.Int64)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			counts[maphash.Bytes(seed, yardstick.SortTwo(buf[:0], queries[i%draws]))].Add(1)
		}
	})
	b.Run("parse+encode", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			v, err := url.ParseQuery(queries[i%draws])
			if err != nil || v.Encode() == "" {
				b.Fatal(err)
			}
		}
	})
	b.Run("sentinel_hot_parameter", func(b *testing.B) {
		sentinelRule(b, 1<<40)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			entry, refused := sentinel.Entry("search", sentinel.WithArgs(values[i%draws]))
			if refused != nil {
				b.Fatal(refused)
			}
			entry.Exit()
		}
	})
	b.Run("aegis_hotkey_add", func(b *testing.B) {
		h, err := aegis.NewHotkey(&aegis.Option{HotKeyCnt: 100})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h.Add(queries[i%draws], 1)
		}
	})
	b.Run("cactus_Inc_buffered", func(b *testing.B) {
		client, err := cactus.NewClientWithConfig(&cactus.ClientConfig{
			Address: socket(b), UseBuffered: true, FlushInterval: 100 * time.Millisecond, FlushBytes: wire.MaxPacket,
		})
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := client.Inc(names[i%draws], 1, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("datadog_aggregated", func(b *testing.B) {
		client := newDatadog(b)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := client.Incr(names[i%draws], nil, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse+encode_+_datadog_aggregated", func(b *testing.B) {
		client := newDatadog(b)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			v, err := url.ParseQuery(queries[i%draws])
			if err != nil {
				b.Fatal(err)
			}
			if err := client.Incr("shop.terms.hot_param."+v.Encode(), nil, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRequestRefused measures the cost of a request whose key is hot and over its limit.
func BenchmarkRequestRefused(b *testing.B) {
	b.Run("hotparam", func(b *testing.B) {
		g := newGuard(b, &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 1}, Mode: rules.ModeLimit}, nil)
		g.HotSet().Update("", published.Change{Hot: []published.Hot{{Key: rules.Key{Rule: "terms", Text: "GET /search?b=2&q=1"}, Low: 1, High: 1, Rate: 1, Mode: rules.ModeLimit}}})
		g.Check(search("q=1&b=2")) // the one that passes
		b.ReportAllocs()
		for b.Loop() {
			if g.Check(search("q=1&b=2")).Allowed {
				b.Fatal("over the limit, and allowed")
			}
		}
	})
	b.Run("sentinel_hot_parameter", func(b *testing.B) {
		sentinelRule(b, 0)
		b.ReportAllocs()
		for b.Loop() {
			if _, refused := sentinel.Entry("search", sentinel.WithArgs("1")); refused == nil {
				b.Fatal("over the limit, and allowed")
			}
		}
	})
}

func search(query string) middleware.Request {
	return middleware.Request{Method: "GET", Path: "/search", Query: query, Pattern: "GET /search"}
}

// newGuard returns a guard whose collector flushes StatsD lines to a socket as in production,
// after it has seen all queries.
func newGuard(b *testing.B, limit *rules.Limit, queries []string) *middleware.Guard {
	b.Helper()
	rules := testRules(b, "GET /search", unreachable, limit)
	sink, err := statsdsink.New(statsdsink.Config{Rules: rules, Addrs: []string{socket(b)}})
	if err != nil {
		b.Fatal(err)
	}
	counts, err := collector.New(collector.Config{Sink: sink, Rules: rules})
	if err != nil {
		b.Fatal(err)
	}
	g, err := middleware.New(rules, counts)
	if err != nil {
		b.Fatal(err)
	}
	for i, q := range queries {
		g.Check(search(q))
		if i%10_000 == 0 {
			counts.Flush(b.Context(), time.Now())
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- counts.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if dropped := counts.Stats().Dropped.Sum(); dropped > 0 {
			b.Errorf("%d counts were dropped", dropped)
		}
	})
	return g
}

func newDatadog(b *testing.B) *datadog.Client {
	b.Helper()
	client, err := datadog.New(socket(b), datadog.WithClientSideAggregation(), datadog.WithoutTelemetry())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := client.Close(); err != nil {
			b.Error(err)
		}
	})
	return client
}

var startSentinel = sync.OnceValue(func() error {
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel)
	c := config.NewDefaultConfig()
	c.Sentinel.Log.Logger = logging.NewConsoleLogger()
	c.Sentinel.Log.Metric.FlushIntervalSec = 0 // no metric files
	return sentinel.InitWithConfig(c)
})

func sentinelRule(b *testing.B, threshold int64) {
	b.Helper()
	if err := startSentinel(); err != nil {
		b.Fatal(err)
	}
	if _, err := hotspot.LoadRules([]*hotspot.Rule{{
		Resource: "search", MetricType: hotspot.QPS, ControlBehavior: hotspot.Reject,
		ParamIndex: 0, Threshold: threshold, DurationInSec: 1, ParamsMaxCapacity: 2 * distinct,
	}}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := hotspot.ClearRules(); err != nil {
			b.Error(err)
		}
	})
}

// socket returns the address of a UDP socket without a reader. Sending there costs the sender the
// usual time, and no reader adds any.
func socket(b *testing.B) string {
	b.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}
