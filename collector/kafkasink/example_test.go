package kafkasink_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/kafka"
)

// Counts go to Kafka. Check reports problems of the cluster. A program may skip it.
func ExampleNew() {
	sink, err := kafkasink.New(kafkasink.Config{
		Rules:      testRules(),
		Connection: kafka.Connection{Brokers: []string{"127.0.0.1:1"}, Timeout: time.Second},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = sink.Close() }()
	if err := sink.Check(context.Background()); err != nil {
		fmt.Println(err)
	}
	counts, err := collector.New(collector.Config{Rules: testRules(), Sink: sink}) // and counts.Run
	fmt.Println(counts != nil, err)
	// Output:
	// kafka: no broker can be used:
	//   127.0.0.1:1: unable to dial: dial tcp 127.0.0.1:1: connect: connection refused: nothing listens at the address; see brokers
	// true <nil>
}
