package gateways

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// turns returns turns with these latencies and processor times, all in µs.
func turns(all ...[5]int) (turns []Turn) {
	for _, t := range all {
		us := func(i int) time.Duration { return time.Duration(t[i]) * time.Microsecond }
		turns = append(turns, Turn{Requests: 1000, P50: us(0), P99: us(1), LateP99: 90 * time.Microsecond, Gateway: us(2), Service: us(3), Stores: us(4)})
	}
	return turns
}

func result() *Measurement {
	return &Measurement{
		Machine: yardstick.Machine{Date: "2026-11-23", CPU: "a processor", Cores: "2 processors", System: "linux/amd64", Go: "Go 1.26", Redis: "Redis 7"},
		Rate:    1000, Connections: 32, Turns: 3, Slice: 600 * time.Millisecond, Busy: 0.02,
		Gateways: []Gateway{{
			Name: "Envoy", Version: "1.40.0",
			Rows: []VariantRow{
				{Name: alone, Kind: cold, Turns: turns([5]int{200, 500, 100}, [5]int{400, 1000, 200}, [5]int{200, 500, 100})},
				{Name: rlsName, Kind: cold, Turns: turns([5]int{300, 600, 150, 140, 10}, [5]int{500, 1100, 300, 280, 20}, [5]int{250, 550, 150, 140, 10})},
				{Name: peerName, Kind: cold, Turns: turns([5]int{600, 500, 150, 280, 50}, [5]int{600, 1000, 150, 300, 50}, [5]int{500, 500, 150, 280, 50})},
			},
		}, {
			Name: "any program",
			Rows: []VariantRow{
				{Name: "a GET", Kind: cold, Turns: turns([5]int{100, 200}, [5]int{100, 200}, [5]int{100, 200})},
				{Name: "check", Kind: hot, Turns: turns([5]int{90, 300, 0, 50, 5}, [5]int{90, 300, 0, 50, 5}, [5]int{90, 300, 0, 50, 5})},
			},
		}, {Name: "Caddy", Skipped: "skipped: no Caddy"}},
	}
}

const wantTable = `Measured on 2026-11-23: a processor, 2 processors, linux/amd64, Go 1.26, Redis 7, Envoy 1.40.0. 1000 requests a second over 32 connections, 0.6 s in each of 3 turns; the load sent them
0.09 ms late, at the 99th percentile. Other programs took 2% of the processors before it began.

| | requests | p50 | p99 | processor time | added, p50 and p99 | µs: gateway + service + its stores |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
| **Envoy**, alone | cold | 0.20 ms | 0.50 ms | 100 µs | | |
| ` + "`rls`" + ` | cold | 1.25 (1.25–1.50) | 1.10 (1.10–1.20) | 3.00 (3.00–3.00) | +0.10 ms, +0.10 ms | 150 + 140 + 10 |
| envoyproxy/ratelimit, a call to Redis for each request | cold | 2.50 (1.50–3.00) | 1.00 (1.00–1.00) | 4.80 (2.50–4.80) | +0.40 ms, +0.00 ms | 150 + 280 + 50 |
| **any program**, a GET | cold | 0.10 ms | 0.20 ms | – | | |
| check | hot | 0.90 (0.90–0.90) | 1.50 (1.50–1.50) | – | −0.01 ms, +0.10 ms | – + 50 + 5 |
| **Caddy** | not installed | | | | | |

Envoy with ` + "`rls`" + `, compared with Envoy and envoyproxy/ratelimit, which calls Redis for each request,
takes these multiples (◄ where it takes more): p50 **0.50 (0.50–0.83)**, p99 **1.10 (1.10–1.20)** ◄,
processor time in all **0.62 (0.62–1.20)**, of Envoy **1.00 (1.00–2.00)**, of the service **0.50 (0.50–0.93)**, of its stores **0.20 (0.20–0.40)**.
`

func TestTable(t *testing.T) {
	t.Parallel()
	if got := result().Markdown(); got != wantTable {
		t.Errorf("got\n%s\nwant\n%s", got, wantTable)
	}
}

func TestTableOfARunThatWentBadly(t *testing.T) {
	t.Parallel()
	r := result()
	r.Busy = 0.5
	envoy := &r.Gateways[0]
	envoy.Lacks, envoy.Rows = "envoyproxy/ratelimit", envoy.Rows[:2]
	envoy.Rows[1].Turns[0].Undecided = 30
	got := r.Markdown()
	for _, want := range []string{"was too busy", "\nenvoyproxy/ratelimit was not available", "Envoy, `rls`, cold: 1.0%"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(got, bad) || strings.Contains((&Measurement{}).Markdown(), bad) {
			t.Errorf("it has %q:\n%s", bad, got)
		}
	}
}

func TestWritePage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	const before, after = "# Page\n\n" + beginMark, endMark + "\n\nMore. " + endMark + "\n"
	testenv.WriteFile(t, path, before+"old\n"+after)
	for range 2 { // once more changes nothing
		if err := WritePage(path, result()); err != nil {
			t.Fatal(err)
		}
		if got := testenv.ReadFile(t, path); got != before+wantTable+after {
			t.Fatalf("%s", got)
		}
	}
	for _, bad := range []string{"", "# Page\n" + endMark, beginMark} {
		testenv.WriteFile(t, path, bad)
		if err := WritePage(path, result()); err == nil {
			t.Errorf("no error of %q", bad)
		}
	}
}
