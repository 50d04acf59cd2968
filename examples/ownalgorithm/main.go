// Command ownalgorithm shows a custom limiting algorithm: a back-off for logins, where each try
// makes the next one wait twice as long. Here a limiter gets it by its name; a guard gets it by
// middleware.WithAlgorithm.
//
//	go run ./examples/ownalgorithm
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func main() {
	backend, err := limiter.NewMemory(limiter.MemoryConfig{
		Algorithms: map[rules.Algorithm]limiter.Algorithm{Name: Backoff{}},
	})
	if err != nil {
		log.Fatal(err)
	}
	logins, err := limiter.New(backend, "logins", rules.Quota{
		Algorithm: Name, Rate: rules.Rate{N: 1, Per: 100 * time.Millisecond}, Burst: 5,
	})
	if err != nil {
		log.Fatal(err)
	}
	began := time.Now()
	for try := 1; try <= 6; try++ {
		if err := logins.Wait(context.Background(), "ada"); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%5d ms  try %d\n", time.Since(began).Milliseconds(), try)
	}
}
