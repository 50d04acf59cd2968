package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
)

func TestWhatConcernsAServer(t *testing.T) {
	for text, answer := range map[string]bool{
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                                          true,
		"ERR Error running script (call to f_0): @user_script:12: WRONGTYPE Operation against a key holding the wrong kind of value": true,
		"@user_script:12: bad argument #1 to 'unpack'":                                                                               true,
		"ERR value is not an integer or out of range":                                                                                true,
		"CROSSSLOT Keys in request don't hash to the same slot":                                                                      true,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                                                    true,
		"NOSCRIPT No matching script. Please use EVAL.":                                                                              true,
		"CLUSTERDOWN Hash slot not served":                                                                                           true,
		"CLUSTERDOWN The cluster is down":                                                                                            false,
		"LOADING Redis is loading the dataset in memory":                                                                             false,
		"READONLY You can't write against a read only replica.":                                                                      false,
		"ERR Error running script (call to f_0): @user_script:1: -READONLY You can't write":                                          false,
		"ERR Error running script (call to f_0): @user_script: 1: -OOM command not allowed when used":                                false,
		"OOM command not allowed when used memory > 'maxmemory'.":                                                                    false,
		"MISCONF Redis is configured to save RDB snapshots":                                                                          false,
		"NOREPLICAS Not enough good replicas to write.":                                                                              false,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                                           false,
		"BUSY Redis is busy running a script.":                                                                                       false,
		"NOAUTH Authentication required.":                                                                                            false,
		"NOPERM User limiter has no permissions to run the 'evalsha' command":                                                        false,
		"ERR max number of clients reached":                                                                                          false,
	} {
		var alone *limiter.OpError
		err := fmt.Errorf("somewhere: %w", scriptError(text))
		if got := isAnswer(err); got != answer || errors.As(backendError(t.Context(), err), &alone) != answer {
			t.Errorf("%q: of one op: %t", text, got)
		}
	}
	if isAnswer(io.EOF) || isAnswer(context.DeadlineExceeded) || isAnswer(nil) {
		t.Error("what no server said counts as an answer")
	}
}

// fakeTimeout is the error of a connection whose deadline has passed.
type fakeTimeout struct{}

func (fakeTimeout) Error() string { return "read tcp 127.0.0.1: i/o timeout" }
func (fakeTimeout) Timeout() bool { return true }

func TestADeadlinesErrorIsTheContexts(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := backendError(ctx, fakeTimeout{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fakeTimeout{}) {
		t.Error(err)
	}
	if err := backendError(t.Context(), fakeTimeout{}); errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := backendError(ctx, nil); err != nil {
		t.Error(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := backendError(gone, fakeTimeout{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A script was not executed if the server does not know it and no time is left to send it. The
// error must not count as an answer, or a Failover would take the op for decided.
func TestAnUnknownScriptWithoutTimeIsNoAnswer(t *testing.T) {
	unknown := scriptError("NOSCRIPT No matching script. Please use EVAL.")
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	var alone *limiter.OpError
	if err := backendError(late, unknown); errors.As(err, &alone) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := backendError(t.Context(), unknown); !errors.As(err, &alone) {
		t.Error(err)
	}
}
