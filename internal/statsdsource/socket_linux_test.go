package statsdsource

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hotparam/hotparam/internal/decode"
)

// No packet socket is in the runtime's poller, and reads of it block.
func TestSocketsAreOutsideOfThePoller(t *testing.T) {
	l, err := listenStatsD(t.Context(), []string{"127.0.0.1:0", "[::1]:0", ":0", "unix://" + socketPath(t), "tcp://127.0.0.1:0"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if len(l.packets) != 7 {
		t.Fatalf("%d sockets", len(l.packets))
	}
	polled := polledInodes(t)
	if len(polled) == 0 {
		t.Fatal("nothing is in the poller, not even the listener for connections")
	}
	for _, r := range l.packets {
		if err := r.socket.withDescriptor(func(fd int) {
			var s unix.Stat_t
			if err := unix.Fstat(fd, &s); err != nil || polled[s.Ino] {
				t.Errorf("%v is in the poller (%v)", r.socket.addr, err)
			}
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
				t.Errorf("%v does not block (%v)", r.socket.addr, err)
			}
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("%v is left to children (%v)", r.socket.addr, err)
			}
		}); err != nil {
			t.Error(err)
		}
	}
}

// polledInodes returns the inodes of the files for which this process waits by epoll.
func polledInodes(t *testing.T) map[uint64]bool {
	t.Helper()
	inodes := make(map[uint64]bool)
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		info, err := os.ReadFile(name)
		if err != nil {
			continue // it has been closed
		}
		for line := range strings.Lines(string(info)) {
			if rest, ok := strings.CutPrefix(line, "tfd:"); ok {
				var ino uint64
				if at := strings.Index(rest, "ino:"); at < 0 {
					t.Skip("this kernel does not show inodes") // before 4.13
				} else if _, err := fmt.Sscanf(rest[at:], "ino:%x", &ino); err != nil {
					t.Fatal(err)
				}
				inodes[ino] = true
			}
		}
	}
	return inodes
}

// Closing a socket wakes its reader, and the reader reads nothing of a file that gets the same
// number.
func TestCloseUnderABlockedReader(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "unix"} {
		t.Run(addr, func(t *testing.T) {
			for range 20 {
				if addr != "127.0.0.1:0" {
					addr = "unix://" + socketPath(t)
				}
				l, err := listenStatsD(t.Context(), []string{addr}, 1)
				if err != nil {
					t.Fatal(err)
				}
				r := l.packets[0]
				var reading sync.WaitGroup
				reading.Go(func() {
					for {
						n, err := r.receiver.read()
						if n > 0 {
							t.Error("a packet that nobody sent")
						}
						if errors.Is(err, net.ErrClosed) {
							return
						}
						if !errors.Is(err, os.ErrDeadlineExceeded) {
							t.Error(err)
							return
						}
					}
				})
				if err := l.close(); err != nil {
					t.Error(err)
				}
				in, out, err := os.Pipe() // with its number
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(out, "not for the reader")
				reading.Wait()
				_, _ = in.Close(), out.Close()
				if err := r.socket.withDescriptor(func(int) { t.Error("the descriptor is used") }); !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				if err := l.close(); err != nil {
					t.Errorf("closed twice: %v", err)
				}
			}
		})
	}
}

// A read returns within about a tick when nothing arrives.
func TestReadsEndWithATick(t *testing.T) {
	l, err := listenStatsD(t.Context(), []string{"127.0.0.1:0"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	began := time.Now()
	n, err := l.packets[0].receiver.read()
	if took := time.Since(began); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || took < decode.Tick/2 || took > 20*time.Second {
		t.Errorf("%d packets and %v after %v", n, err, took)
	}
}
