//go:build !linux

package sdnotify

// monotonic is of systemd, which is on Linux alone.
func monotonic() string { return "MONOTONIC_USEC=0" }
