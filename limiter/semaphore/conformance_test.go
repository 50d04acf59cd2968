package semaphore_test

import (
	"testing"

	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

func TestSemaphoreConforms(t *testing.T) {
	limitertest.TestSemaphore(t, limitertest.SemaphoreConfig{
		New: func(t *testing.T) semaphore.Acquirer {
			s, err := semaphore.New(semaphore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Synctest: true,
	})
}
