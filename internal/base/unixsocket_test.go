package base

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveStaleSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	if err := RemoveStaleSocket(t.Context(), "unix", path); err != nil {
		t.Errorf("no file: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"unix", "unixgram"} {
		if err := RemoveStaleSocket(t.Context(), network, path); err == nil {
			t.Errorf("%s: a socket in use was removed", network)
		}
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if err := RemoveStaleSocket(t.Context(), "unix", path); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RemoveStaleSocket(t.Context(), "unix", path); err == nil {
		t.Error("a file that is no socket was removed")
	}
}
