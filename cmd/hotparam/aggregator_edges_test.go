package main

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/hotparam/hotparam/internal/testenv"
)

// SIGHUP does not end the daemon. It reads its file again, and logs that at most a few times.
func TestHangupIsNoEnd(t *testing.T) {
	daemon := startDaemon(t, "--config", "../../deploy/hotparam.yaml", "--redis", "redis://"+miniredis.RunT(t).Addr(), "--listen", fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)))
	for range 100 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	daemon.find("(rules are in force).* changed=false")
	if body := daemon.get("/-/healthy"); body != "healthy\n" {
		t.Errorf("%q", body)
	}
	if n := strings.Count(daemon.log.String(), "rules are in force"); n > 10 {
		t.Errorf("%d lines", n)
	}
}

// Clients that hold connections open, and send nothing or half a request, do not block health
// checks and metrics.
func TestIdleClientsDoNotKeepHealthAway(t *testing.T) {
	daemon := startDaemon(t, "--config", "../../deploy/hotparam.yaml", "--listen", fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)))
	for i := range 400 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(daemon.http, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			fmt.Fprint(conn, "GET /metrics HT")
		}
	}
	if body := daemon.get("/-/healthy"); body != "healthy\n" {
		t.Errorf("%q", body)
	}
	eventually(t, func() error {
		if metrics := daemon.get("/metrics"); !strings.Contains(metrics, "\nhotparam_http_connections 128\n") {
			return fmt.Errorf("/metrics has not 128 connections")
		}
		return nil
	})
}
