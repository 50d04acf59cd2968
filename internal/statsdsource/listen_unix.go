package statsdsource

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"

	"github.com/hotparam/hotparam/internal/base"
)

// socketMode lets every user of the machine write to a Unix socket, as the Datadog agent does.
// The permissions of its directory decide who may.
const socketMode = 0o722

// unixSocket is the file of a Unix socket that this process created.
type unixSocket struct {
	path string
	file fs.FileInfo
}

// listenUnix opens a socket at a path by calling listen. It replaces a socket that no process
// listens at any more.
func listenUnix(ctx context.Context, network, path string, listen func() error) (unixSocket, error) {
	opened := false
	err := base.ListenUnix(ctx, network, path, socketMode, func() error {
		err := listen()
		opened = err == nil
		return err
	})
	if !opened {
		return unixSocket{}, err
	}
	file, statErr := os.Lstat(path)
	return unixSocket{path, file}, errors.Join(err, statErr)
}

// remove removes the file, unless another process has replaced it.
func (s unixSocket) remove() error {
	if s.file == nil {
		return nil
	}
	now, err := os.Lstat(s.path)
	if err == nil && os.SameFile(s.file, now) {
		err = os.Remove(s.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func listenUnixPackets(ctx context.Context, path string) (*packetSocket, error) {
	var lc net.ListenConfig
	var conn *net.UnixConn
	file, err := listenUnix(ctx, "unixgram", path, func() error {
		c, err := lc.ListenPacket(ctx, "unixgram", path)
		if err == nil {
			conn = c.(*net.UnixConn)
		}
		return err
	})
	switch {
	case conn == nil:
		return nil, err
	case err != nil:
		return nil, errors.Join(err, file.remove(), conn.Close())
	}
	return newPacketSocket(conn, file)
}

// unixStream is a Unix stream socket, whose file is removed with it.
type unixStream struct {
	*net.UnixListener
	socket unixSocket
}

func listenUnixStream(ctx context.Context, path string) (*unixStream, error) {
	s := new(unixStream)
	var lc net.ListenConfig
	var err error
	s.socket, err = listenUnix(ctx, "unix", path, func() error {
		l, err := lc.Listen(ctx, "unix", path)
		if err == nil {
			s.UnixListener = l.(*net.UnixListener)
			s.SetUnlinkOnClose(false) // the path may belong to another process by then
		}
		return err
	})
	if err != nil && s.UnixListener != nil {
		err = errors.Join(err, s.Close())
	}
	return s, err
}

// Close closes the socket and removes its file.
func (s *unixStream) Close() error { return errors.Join(s.socket.remove(), s.UnixListener.Close()) }
