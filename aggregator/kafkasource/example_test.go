package kafkasource_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"github.com/hotparam/hotparam/aggregator/kafkasource"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/kafka"
)

// A member of a consumer group publishes to Redis which keys are hot in its partitions, until
// the program is interrupted.
func Example() {
	file, err := config.Load("hotparam.yaml")
	if err != nil {
		slog.Error(err.Error())
		return
	}
	redis, err := hotkeys.NewClient("redis://127.0.0.1:6379/0")
	if err != nil {
		slog.Error(err.Error())
		return
	}
	defer func() { _ = redis.Close() }()
	source, err := kafkasource.New(kafkasource.Config{
		Connection: kafka.Connection{Brokers: []string{"127.0.0.1:9092"}},
		Rules:      file.Rules,
		Publisher: func(partition int32) (kafkasource.PartitionPublisher, error) {
			return hotkeys.NewPublisher(redis, hotkeys.PublisherConfig{
				Namespace: file.Rules.Namespace, Owner: fmt.Sprintf("kafka-%d", partition),
			})
		},
		Log: slog.Default(),
	})
	if err != nil {
		slog.Error(err.Error())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := source.Run(ctx); err != nil {
		slog.Error(err.Error())
	}
}
