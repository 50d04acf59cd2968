package gateways

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// busy returns the share of the processors' time, from 0 to 1, that is in use before anything is
// measured.
func busy(ctx context.Context, during time.Duration) (float64, error) {
	before, err := processorTimes()
	if err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(during):
	}
	after, err := processorTimes()
	if err != nil {
		return 0, err
	}
	return busyShare(before, after), nil
}

func processorTimes() (string, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return "", fmt.Errorf("processor time of this machine: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line, nil
}

// busyShare returns the share of the processors' time in use between two first lines of
// /proc/stat. Such a line is "cpu", then the time in user, nice, system, idle, iowait, irq,
// softirq and steal.
func busyShare(before, after string) float64 {
	earlier, later := strings.Fields(before), strings.Fields(after)
	var all, idle float64
	for i := 1; i < min(len(earlier), len(later), 9); i++ {
		a, _ := strconv.ParseFloat(earlier[i], 64) // the kernel writes only numbers
		b, _ := strconv.ParseFloat(later[i], 64)
		all += b - a
		if i == 4 || i == 5 {
			idle += b - a
		}
	}
	if all <= 0 {
		return 0
	}
	return 1 - idle/all
}
