package hotkeys_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// An instance follows the hot keys of its namespace. Usually the target is the HotSet of
// a middleware.Guard.
func ExampleWatcher() {
	set := hotset.New(func(published.Hot, struct{}, bool) struct{} { return struct{}{} }, hotset.Config[struct{}]{
		OnSwap: func(version string, hot []published.Hot) { fmt.Println(version, len(hot)) },
	})
	client, err := hotkeys.NewClient("redis://127.0.0.1:6379/0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	watcher, err := hotkeys.NewWatcher(client, hotkeys.WatcherConfig{Namespace: "shop", Logger: slog.Default()}, set)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	_ = watcher.Run(ctx) // until the program ends
}

// A program that detects hot keys on its own publishes them to all instances.
func ExamplePublisher() {
	client, err := hotkeys.NewClient("redis://127.0.0.1:6379/0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	publisher, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{Namespace: "shop", Owner: "detector"})
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher.Publish(published.Change{Hot: []published.Hot{{
		Key:   rules.Key{Rule: "search-terms", Text: "GET /search?q=phone"},
		Low:   400,
		High:  400,
		Rate:  400,
		Limit: rules.Rate{N: 50, Per: time.Second},
		Burst: 100,
		Mode:  rules.ModeLimit,
	}}})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	_ = publisher.Run(ctx) // until the program ends
}

func ExampleList() {
	client, err := hotkeys.NewClient("redis://127.0.0.1:6379/0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	hot, err := hotkeys.List(context.Background(), client, "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range hot {
		fmt.Println(h.Key, h.Rate, h.Limit)
	}
}

// Errors name the field and what to do, and contain no password.
func ExampleNewClientFrom() {
	_, err := hotkeys.NewClientFrom(hotkeys.ClientConfig{URL: "redis://127.0.0.1:6379/0", CA: "ca.pem"})
	fmt.Println(err)
	// Output: redis TLS: the URL asks for no TLS; want rediss://
}
