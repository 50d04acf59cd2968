package gateways

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// site holds the programs that run alongside all gateways.
type site struct {
	app   string            // address of the application: nginx with a fixed answer
	doors map[string]string // addresses by their name in the guard's log
	guard *service
}

// service is a service that decides on requests for a gateway: the guard or another.
type service struct {
	processes []int // process ids of the service
	stores    []int // process ids of the aggregator and Redis, which it needs
	// decided returns the number of its decisions.
	decided func(ctx context.Context) (int, error)
}

// openSite starts the guard with all doors, its aggregator, Redis and the application. When it
// returns, two values are hot.
func openSite(tb testing.TB, program string) *site {
	tb.Helper()
	tb.Cleanup(http.DefaultClient.CloseIdleConnections)
	store := testenv.Redis(tb)
	config := filepath.Join(tb.TempDir(), "hotparam.yaml")
	text := fmt.Sprintf(rules, store.URL(), testenv.FreePort(tb), testenv.FreePort(tb))
	testenv.WriteFile(tb, config, text)
	ctx := context.WithoutCancel(tb.Context()) // testenv ends the programs at cleanup, after tb.Context is canceled
	aggregator := testenv.Start(tb, exec.CommandContext(ctx, program, "aggregator", "--config", config))
	aggregator.WaitFor("aggregator is up")
	const free = "127.0.0.1:0"
	guard := testenv.Start(tb, exec.CommandContext(ctx, program, "guard", "--config", config,
		"--rls", free, "--auth", free, "--check", free, "--spoe", free, "--http", free))
	s := &site{doors: make(map[string]string)}
	for field := range strings.FieldsSeq(guard.WaitFor(".*guard is up.*")[0]) {
		if name, addr, ok := strings.Cut(field, "="); ok {
			s.doors[name] = addr
		}
	}
	s.guard = &service{
		processes: []int{guard.PID()},
		stores:    []int{aggregator.PID(), store.PID()},
		decided: func(ctx context.Context) (int, error) {
			text, err := get(ctx, "http://"+s.doors["http"]+"/metrics")
			return sum(text, checks), err
		},
	}
	s.app = real.Nginx(tb, "nginx", map[string]string{nginxServer: "", nginxAsks: `return 200 "ok\n";`}).Addr
	s.heat(tb)
	return s
}

// heat asks about the two hot values until both are limited as intended.
func (s *site) heat(tb testing.TB) {
	tb.Helper()
	type checkAnswer struct {
		Allowed bool `json:"allowed"`
		Limit   int  `json:"limit"`
	}
	ask := func(k requestKind) (a checkAnswer) {
		response, err := http.Post("http://"+s.doors["check"]+"/v1/check", "application/json", strings.NewReader(question(k.targets()[0])))
		if err != nil {
			tb.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
			tb.Fatal(err)
		}
		return a
	}
	await(tb, "hot values", func() error {
		for range 100 {
			ask(hot)
			ask(refused)
		}
		within, beyond := ask(hot), ask(refused)
		if !within.Allowed || within.Limit == 0 || beyond.Allowed {
			return fmt.Errorf("within its limit: %+v, beyond: %+v", within, beyond)
		}
		return nil
	})
}

// await waits until ready returns no error.
func await(tb testing.TB, what string, ready func() error) {
	tb.Helper()
	var err error
	testenv.Within(tb, 30*time.Second, what, func() bool {
		if tb.Context().Err() != nil {
			tb.Fatal(tb.Context().Err())
		}
		err = ready()
		return err == nil
	}, func() any { return err })
}

var checks = regexp.MustCompile(`(?m)^hotparam_guard_checks_total\{.*\} ([\d.e+]+)$`)

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
