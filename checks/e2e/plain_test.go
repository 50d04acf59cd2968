package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

// plainVariable makes the test program a server without hotparam.
const plainVariable = "HOTPARAM_E2E_PLAIN"

// plainServer starts a server without hotparam to compare latencies with. It is a process like
// the instances, because on a busy machine a request waits for the system to run another process.
func (f *fleet) plainServer() (url string) {
	f.t.Helper()
	return "http://" + f.startSelf(plainVariable + "=1").WaitFor(`plain server is up address=(\S+)`)[1]
}

// bePlainServer serves until the process is asked to end, and returns its exit code.
func bePlainServer() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(os.Stderr, "plain server is up address=%s\n", l.Addr())
	if err := server.Serve(l); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
