package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A dry run asks the servers: it fails if one does not answer.
func TestAggregatorDryRun(t *testing.T) {
	bad := write(t, "namespace: shop\nrulez: []\n")
	t.Run("the example", func(t *testing.T) {
		t.Setenv("HOTPARAM_REDIS", testenv.Redis(t).URL())
		for _, flag := range []string{"--dry-run", "--check"} { // its former name
			r := hotparamCommand(t, "aggregator", "--config", exampleConfig, flag)
			r.exits(t, exitOK, "good, ", "127.0.0.1:8125", "127.0.0.1:9125", "Redis answers")
		}
	})
	t.Run("servers that do not answer", func(t *testing.T) {
		gone := unreachable(t)
		hotparamCommand(t, "aggregator", "--config", exampleConfig, "--dry-run", "--redis", "redis://"+gone).exits(t, exitUnreachable, "good, ", "is Redis running at redis://"+gone)
		t.Setenv("HOTPARAM_REDIS", testenv.Redis(t).URL())
		path := write(t, goodRules)
		hotparamCommand(t, "aggregator", "--config", path, "--dry-run", "--source", "graphite", "--graphite", "http://"+gone).exits(t, exitUnreachable, "good, ", "http://"+gone)
		hotparamCommand(t, "aggregator", "--config", path, "--dry-run", "--source", "kafka", "--brokers", gone).exits(t, exitUnreachable, "good, ", gone)
	})
	t.Run("flag before variable before file", func(t *testing.T) {
		t.Setenv("HOTPARAM_LISTEN", "127.0.0.1:1111")
		t.Setenv("HOTPARAM_HTTP", "127.0.0.1:2222")
		t.Setenv("HOTPARAM_REDIS", "redis://:geheim@"+unreachable(t)+"/1")
		r := hotparamCommand(t, "aggregator", "--config", exampleConfig, "--dry-run", "--http", "127.0.0.1:3333")
		r.exits(t, exitUnreachable, "StatsD 127.0.0.1:1111", "/1, HTTP 127.0.0.1:3333", "HTTP 127.0.0.1:3333")
		if strings.Contains(r.err, "geheim") {
			t.Errorf("stderr tells the password: %q", r.err)
		}
	})
	t.Run("bad file", func(t *testing.T) {
		hotparamCommand(t, "aggregator", "--config", bad, "--dry-run").exits(t, exitConfig, bad+":2:1", "rulez")
	})
	t.Run("bad file without --dry-run", func(t *testing.T) {
		hotparamCommand(t, "aggregator", "--config", bad).exits(t, exitConfig, bad+":2:1")
	})
	t.Run("no file", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "none.yaml")
		hotparamCommand(t, "aggregator", "--config", missing).exits(t, exitConfig, missing, "no such file")
	})
	t.Run("bad Redis URL", func(t *testing.T) {
		r := hotparamCommand(t, "aggregator", "--config", exampleConfig, "--dry-run", "--redis", "http://:geheim@127.0.0.1/")
		r.exits(t, exitUsage, "redis URL")
		if strings.Contains(r.err, "geheim") {
			t.Errorf("stderr tells the password: %q", r.err)
		}
	})
}

// If an address is in use, the command fails and prints the address.
func TestAggregatorCannotListen(t *testing.T) {
	path := write(t, goodRules)
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	r := hotparamCommand(t, "aggregator", "--config", path, "--listen", packets.LocalAddr().String())
	r.exits(t, exitFailure, packets.LocalAddr().String(), "in use by another program", "--listen", "aggregator.listen")

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	r = hotparamCommand(t, "aggregator", "--config", path, "--listen", "127.0.0.1:0", "--http", listener.Addr().String())
	r.exits(t, exitFailure, listener.Addr().String(), "in use")
}

// The aggregator starts without Redis, and exits with 0 when it is stopped. Its log is on stderr,
// as text or as JSON lines.
func TestAggregatorLogs(t *testing.T) {
	path := write(t, goodRules)
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var out bytes.Buffer
			log := &endAtLine{text: "aggregator is up", end: cancel}
			code := run(ctx, []string{
				"aggregator", "--config", path, "--log-format", format,
				"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--redis", "redis://" + unreachable(t) + "/0",
			}, streams{in: strings.NewReader(""), out: &out, err: log})
			result{code, out.String(), log.String()}.exits(t, exitOK, "aggregator is up", "aggregator has drained")
			if out.Len() > 0 {
				t.Errorf("stdout: %q, want none", out.String())
			}
			for line := range strings.Lines(log.String()) {
				if json.Valid([]byte(line)) != (format == "json") {
					t.Errorf("log line %q, want %s", line, format)
				}
			}
		})
	}
}

// endAtLine is a log that ends the run once it contains a text. The logger writes one line at a
// time, and the run has ended when the log is read.
type endAtLine struct {
	bytes.Buffer
	text string
	end  func()
}

func (e *endAtLine) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(e.text)) {
		e.end()
	}
	return e.Buffer.Write(p)
}
