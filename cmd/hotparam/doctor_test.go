package main

import (
	"strings"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/doctor"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

func TestDoctor(t *testing.T) {
	file := write(t, goodRules)
	r := hotparamCommand(t, "doctor", "--config", file, "--redis", unreachable(t))
	if r.code != exitFailure || !strings.Contains(r.out, "problem  redis") || !strings.Contains(r.out, "→ start Redis") || r.err != "" {
		t.Errorf("exit code %d\nstdout:\n%sstderr:\n%s", r.code, r.out, r.err)
	}
	server := testenv.Redis(t)
	r = hotparamCommand(t, "doctor", "--config", file, "--redis", server.Addr(), "--json")
	var found []doctor.Finding
	decodeJSON(t, r.out, &found)
	if r.code != exitFailure || found[0].Check != "file" || found[0].Status != doctor.OK || !strings.Contains(r.out, "no aggregator publishes") {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
	publish(t, server, published.Change{})
	r = hotparamCommand(t, "doctor", "--config", file, "--redis", server.Addr())
	if r.code != exitOK || !strings.Contains(r.out, "receives counts of 2 instances") {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
	hotparamCommand(t, "doctor", "--namespace", "a b").exits(t, exitUsage, "--namespace")
	hotparamCommand(t, "doctor", "--config", write(t, "rules: []")).exits(t, exitConfig, "rules is empty")
}
