package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestJudgeEnforcement(t *testing.T) {
	ms := int64(time.Millisecond)
	outcomes := func() []burstOutcome {
		return []burstOutcome{
			{Requests: []int64{10 * ms, 12 * ms, 14 * ms}, Refused: 31 * ms, Swapped: 20 * ms},
			{Requests: []int64{11 * ms, 13 * ms, 40 * ms}, Refused: 25 * ms, Swapped: 27 * ms},
		}
	}
	// The fourth request is the one at 13. The second instance sees a refusal first.
	if got, want := judge(outcomes(), 4), (enforced{last: 12 * time.Millisecond, first: 12 * time.Millisecond, refused: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	never := outcomes()
	never[0].Refused, never[0].Swapped = 0, 0
	if got := judge(never, 4); !got.missed || got.last != EnforceLimit || got.first != 12*time.Millisecond {
		t.Errorf("%+v, want one that is missed", got)
	}
	open := outcomes()
	open[0].Refused, open[1].Refused = 0, 0
	if got, want := judge(open, 4), (enforced{last: 14 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestEnforceResult(t *testing.T) {
	var r EnforceResult
	for i := range 200 {
		r.add(enforced{last: time.Duration(200-i) * time.Millisecond, first: time.Millisecond, refused: i%2 == 0, missed: i == 7})
	}
	r.sum()
	if len(r.First) != 100 || r.Missed != 1 || !slices.IsSorted(r.Last) {
		t.Errorf("%d first ones, %d missed", len(r.First), r.Missed)
	}
	text, err := json.Marshal(r)
	if want := `{"n":200,"p50_ms":100,"p99_ms":198,"max_ms":200}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

func TestEnforceOverARedisThatWasThere(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	server := testenv.Redis(t)
	const instances, samples = 3, 4
	r, err := Enforce(t.Context(), EnforceConfig{Command: partsOfTest(), Instances: instances, Samples: samples, Zipf: true, Redis: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	if r.N != samples || r.Missed != 0 || len(r.First) != samples || r.P50MS <= 0 || r.P50MS > r.P99MS || r.P99MS > r.MaxMS {
		t.Errorf("%+v", r)
	}
	leavesNothing(t, server)
}

func TestEnforceOverARedisOfItsOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server in PATH (Debian: apt-get install redis-server)")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	r, err := Enforce(t.Context(), EnforceConfig{Command: partsOfTest(), Instances: 2, Samples: 2, Slow: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.N != 2 || r.Missed != 0 {
		t.Errorf("%+v", r)
	}
	mustBeEmpty(t, dir)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = Enforce(ctx, EnforceConfig{Command: partsOfTest(), Instances: 2, Samples: 1000, Progress: func(int, int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	mustBeEmpty(t, dir)
}

func TestEnforceWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Enforce(t.Context(), EnforceConfig{Command: partsOfTest()}); !errors.Is(err, ErrNoRedis) {
		t.Errorf("no redis-server: error %v", err)
	}
	if _, err := Enforce(t.Context(), EnforceConfig{Command: partsOfTest(), Redis: "redis://127.0.0.1:1/0"}); !errors.Is(err, ErrNoRedis) {
		t.Errorf("nobody listens: error %v", err)
	}
}

// A redis-server that does not start reports why.
func TestRedisThatDoesNotStart(t *testing.T) {
	path, err := exec.LookPath("false")
	if err != nil {
		t.Skip("no command false")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if _, err := startRedis(t.Context(), path); err == nil {
		t.Error("it starts")
	}
	mustBeEmpty(t, dir)
}
