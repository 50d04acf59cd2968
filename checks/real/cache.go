package real

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// fetchPatience allows for about 50 MB over a slow line.
const fetchPatience = 4 * time.Minute

// cached returns the directory of that name in the user's cache, which holds files that tests
// fetch from a registry. If it does not exist, fetch fills a work directory that becomes it. One
// process fetches while others that need the directory wait. The directory appears whole or not at
// all, so a failed fetch is retried.
func cached(ctx context.Context, name string, fetch func(ctx context.Context, work string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache: %w", err)
	}
	cache = filepath.Join(cache, "hotparam-test")
	dir := filepath.Join(cache, name)
	if isThere(dir) {
		return dir, nil
	}
	unlock, err := lockDirectory(cache)
	if err != nil {
		return "", err
	}
	defer unlock()
	if isThere(dir) {
		return dir, nil // another process was faster
	}
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	if err := fetch(ctx, work); err != nil {
		return "", errors.Join(err, os.RemoveAll(work))
	}
	return dir, os.Rename(work, dir)
}

// lockDirectory creates the directory if necessary and waits until no other process locks it. The
// kernel releases the lock if the process dies.
func lockDirectory(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return func() { f.Close() }, nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// runIn runs a command in a directory.
func runIn(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return nil
}
