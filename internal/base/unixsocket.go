package base

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// staleSocketTimeout bounds the check whether a process listens on a socket.
const staleSocketTimeout = time.Second

// ListenUnix removes a stale socket at a path, opens a socket there by calling listen, and sets
// its mode. network is "unix" or "unixgram".
func ListenUnix(ctx context.Context, network, path string, mode fs.FileMode, listen func() error) error {
	if err := RemoveStaleSocket(ctx, network, path); err != nil {
		return err
	}
	if err := listen(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: make its directory first", err)
		}
		return err
	}
	return os.Chmod(path, mode)
}

// RemoveStaleSocket removes the socket at a path if no process listens there, as after a process
// was killed. network is "unix" or "unixgram". It returns an error if a process listens there or
// the file is not a socket, and nil if there is no file.
func RemoveStaleSocket(ctx context.Context, network, path string) error {
	file, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case file.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket: remove it, or choose another path", path)
	}
	dialer := net.Dialer{Timeout: staleSocketTimeout}
	conn, err := dialer.DialContext(ctx, network, path)
	if err == nil {
		_ = conn.Close()
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	if err == nil || errors.Is(err, syscall.EPROTOTYPE) { // EPROTOTYPE: a socket of the other kind, which is in use
		return fmt.Errorf("%s is in use: another process listens there", path)
	}
	return err
}
