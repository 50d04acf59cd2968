//go:build !lean

package bench

import (
	"context"

	"github.com/hotparam/hotparam/internal/kafkafake"
)

func init() { parts["broker"] = configured(runBroker) }

// runBroker runs an embedded Kafka. It answers with its address.
func runBroker(_ context.Context, l *link, _ struct{}) error {
	broker, err := kafkafake.Start(1)
	if err != nil {
		return err
	}
	defer broker.Close()
	if err := l.send(broker.Addr()); err != nil {
		return err
	}
	return l.untilEnd()
}
