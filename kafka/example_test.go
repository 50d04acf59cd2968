package kafka_test

import (
	"fmt"

	"github.com/hotparam/hotparam/kafka"
)

func ExampleConnection_Validate() {
	c := kafka.Connection{Brokers: []string{"kafka-1:9092", "kafka-2"}}
	fmt.Println(c.Validate())

	c.Brokers[1] = "kafka-2:9092"
	fmt.Println(c.Validate(), c.WithDefaults().ClientID)
	// Output:
	// brokers: "kafka-2": missing port in address; want host:port, as kafka-1:9092
	// <nil> hotparam
}
