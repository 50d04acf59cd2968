package statsdsource

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// socketPath returns a path for a Unix socket, which must be short.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// Both kinds of Unix socket are writable for all users, replace a stale socket, and leave nothing
// behind.
func TestUnixSocketFiles(t *testing.T) {
	for _, scheme := range []string{"unix://", "unixstream://"} {
		t.Run(scheme, func(t *testing.T) {
			path := socketPath(t)
			for _, network := range []string{"unixgram", "unix"} { // stale ones of both kinds
				leaveSocket(t, network, path)
				l, err := listenStatsD(t.Context(), []string{scheme + path}, 1)
				if err != nil {
					t.Fatal(err)
				}
				if file, err := os.Stat(path); err != nil || file.Mode() != fs.ModeSocket|socketMode {
					t.Errorf("the socket is %v, %v", file.Mode(), err)
				}
				for _, other := range []string{"unix://", "unixstream://"} {
					if _, err := listenStatsD(t.Context(), []string{other + path}, 1); err == nil || !strings.Contains(err.Error(), "in use") {
						t.Errorf("another listener on %s: %v, want an error that it is in use", other+path, err)
					}
				}
				if err := l.close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the socket is still there: %v", err)
				}
			}
		})
	}
}

// leaveSocket leaves the file of a socket without a listener.
func leaveSocket(t *testing.T, network, path string) {
	t.Helper()
	addr := &net.UnixAddr{Net: network, Name: path}
	if network == "unix" {
		l, err := net.ListenUnix(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close()
		return
	}
	conn, err := net.ListenUnixgram(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// A file that is not a socket of ours is left alone, with a clear error.
func TestUnixSocketRefusals(t *testing.T) {
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"unix://" + path: "is not a socket", "unixstream://" + path: "is not a socket",
		"unix://" + filepath.Dir(path) + "/none/s": "make its directory", "unixstream://" + filepath.Dir(path): "is not a socket",
		"unix://relative": "absolute path",
	} {
		_, err := listenStatsD(t.Context(), []string{"127.0.0.1:0", address}, 1)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v, want an error with %q", address, err, want)
		}
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "precious" {
		t.Errorf("the file is %q, %v", content, err)
	}
}

// A socket whose path now belongs to another one is not removed with it.
func TestUnixSocketOfAnotherStays(t *testing.T) {
	path := socketPath(t)
	for _, address := range []string{"unix://" + path, "unixstream://" + path} {
		l, err := listenStatsD(t.Context(), []string{address}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, path+"x"); err != nil { // its inode lives on
			t.Fatal(err)
		}
		other, err := listenStatsD(t.Context(), []string{address}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s: the other's socket is gone: %v", address, err)
		}
		if err := other.close(); err != nil {
			t.Error(err)
		}
		_ = os.Remove(path + "x")
	}
}
