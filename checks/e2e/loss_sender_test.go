package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/hotparam/hotparam"
)

// senderVariable makes the test program an instance that sends counts. Its value is the JSON of a
// [sender].
const senderVariable = "HOTPARAM_E2E_SENDER"

// sender is an instance that sends the requests of a plan to itself, through its guard and
// collector. It logs a line "key planned before after" for each counted request, in nanoseconds.
type sender struct {
	Config, Log         string // files
	Instance, Instances int
	Panes               int64         // length of the plan
	Restarts            *restartTimes // nil: the plan is that of losses
}

func (s *sender) plan() *lossPlan {
	if s.Restarts != nil {
		return s.Restarts.plan()
	}
	return newLossPlan(s.Panes)
}

// beSender runs a sender in a process of its own. It begins at the instant, in nanoseconds, that
// it reads from its standard input. After its plan it continues until it is asked to end, so that
// all counts are sent and losses are reported.
func beSender(text string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var s sender
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (s *sender) run(ctx context.Context) error {
	hp, err := hotparam.Open(ctx, s.Config, hotparam.WithName(fmt.Sprint("sender-", s.Instance)))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	plan := s.plan()
	for _, path := range plan.paths() {
		mux.HandleFunc("GET "+path, func(http.ResponseWriter, *http.Request) {})
	}
	if err = s.request(ctx, plan, hp.Handler(mux)); err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, hp.Close(context.WithoutCancel(ctx)))
}

func (s *sender) request(ctx context.Context, plan *lossPlan, handler http.Handler) error {
	log, err := os.Create(s.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Println("sender is up")
	var begin int64
	if _, err := fmt.Fscan(os.Stdin, &begin); err != nil {
		return fmt.Errorf("when to begin: %w", err)
	}
	out := bufio.NewWriter(log)
	for pane := range plan.panes {
		requests := plan.part(pane, s.Instance, s.Instances)
		slices.SortFunc(requests, func(a, b lossRequest) int { return cmp.Compare(a.after, b.after) })
		for _, r := range requests {
			at := time.Unix(0, begin).Add(time.Duration(pane)*lossPane + r.after)
			if d := time.Until(at); d > 3*time.Millisecond { // not a timer each
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(d):
				}
			}
			k := &plan.keys[r.key]
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, k.path()+"?q="+k.value, http.NoBody)
			before := time.Now().UnixNano()
			handler.ServeHTTP(nowhere{}, req)
			fmt.Fprintln(out, r.key, at.UnixNano(), before, time.Now().UnixNano())
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Println("sender is done")
	return nil
}

// nowhere is a response without a reader.
type nowhere struct{}

func (nowhere) Header() http.Header            { return make(http.Header) }
func (nowhere) Write(text []byte) (int, error) { return io.Discard.Write(text) }
func (nowhere) WriteHeader(int)                {}
