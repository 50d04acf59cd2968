package graphitesource_test

import (
	"context"
	"log/slog"
	"os"
	"os/signal"

	"github.com/hotparam/hotparam/aggregator/graphitesource"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/rules"
)

// logger is a Publisher that logs keys that become hot.
type logger struct{ *slog.Logger }

func (l logger) Publish(c rules.Change) {
	for _, h := range c.Hot {
		l.Info("hot", "key", h.Text, "low", h.Low)
	}
}
func (logger) Refresh(int, []rules.Hot)   {}
func (logger) Suspects(int, []rules.Hot)  {}
func (logger) Instances([]rules.Instance) {}

// A source asks Graphite every second until the program is interrupted.
func Example() {
	file, err := config.Load("hotparam.yaml")
	if err != nil {
		slog.Error(err.Error())
		return
	}
	source, err := graphitesource.New(graphitesource.Config{
		Rules:     file.Rules,
		Publisher: logger{slog.Default()},
		URL:       "https://graphite.example",
		Token:     os.Getenv("GRAPHITE_TOKEN"),
		Log:       slog.Default(),
	})
	if err != nil {
		slog.Error(err.Error())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := source.Check(ctx); err != nil {
		slog.Error(err.Error())
		return
	}
	if err := source.Run(ctx); err != nil {
		slog.Error(err.Error())
	}
}
