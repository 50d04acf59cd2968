//go:build !linux

package gateways

import (
	"errors"
	"fmt"
	"time"
)

func processorTime(int) (time.Duration, error) {
	return 0, fmt.Errorf("processor time of other processes: %w on this system", errors.ErrUnsupported)
}
