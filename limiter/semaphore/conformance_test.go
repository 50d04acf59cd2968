package semaphore_test

import (
	"testing"

	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

func TestSemaphoreConforms(t *testing.T) {
	limitertest.TestSemaphore(t, limitertest.SemaphoreConfig{
		New:      func(*testing.T) semaphore.Acquirer { return semaphore.New(semaphore.Config{}) },
		Synctest: true,
	})
}
