package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type redisConfig struct{ Path string }

// runRedis runs a redis-server, which would not end with its parent otherwise. It answers with
// the server's URL.
func runRedis(ctx context.Context, l *link, c redisConfig) error {
	var server *redisServer
	err := errPortTaken
	for try := 0; errors.Is(err, errPortTaken) && try < 5; try++ {
		server, err = startRedis(ctx, c.Path)
	}
	if err != nil {
		return err
	}
	err = l.send("redis://" + server.addr + "/0")
	if err == nil {
		err = l.untilEnd()
	}
	return errors.Join(err, server.stop())
}

// redisServer is a redis-server on a free port with a directory of its own. It persists nothing.
type redisServer struct {
	cmd  *exec.Cmd
	dir  string
	addr string
	said *bufio.Scanner
	gone chan struct{} // closed when the server has ended
}

// errPortTaken means that another process has taken the port first.
var errPortTaken = errors.New("another process has the port")

func startRedis(ctx context.Context, path string) (_ *redisServer, err error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &redisServer{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), gone: make(chan struct{})}
	if s.dir, err = os.MkdirTemp("", "hotparam-bench-"); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", s.dir)
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.said = bufio.NewScanner(out)
	err = s.awaitReady()
	go func() {
		defer close(s.gone)
		_, _ = io.Copy(io.Discard, out) // the server would block without a reader
		_ = s.cmd.Wait()                // it ended by a signal or on its own; its data is not needed
	}()
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// awaitReady reads the server's output until it accepts connections. A server whose port is taken
// never reports that.
func (s *redisServer) awaitReady() error {
	last := "it said nothing"
	for s.said.Scan() {
		line := s.said.Text()
		switch {
		case strings.Contains(line, "Ready to accept connections"):
			return nil
		case strings.Contains(line, "Address already in use"):
			return errPortTaken
		}
		last = line
	}
	return fmt.Errorf("redis-server does not start: %s", last)
}

// stop ends the server and removes its directory.
func (s *redisServer) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails if the server has ended
	var err error
	select {
	case <-s.gone:
	case <-time.After(partGrace / 2):
		err = s.cmd.Process.Kill()
		<-s.gone
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
