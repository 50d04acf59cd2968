package main

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// The shell completes values of flags and arguments.
func TestCompletion(t *testing.T) {
	server := testenv.Redis(t)
	publish(t, server, published.Change{Hot: []published.Hot{{
		Key: rules.Key{Rule: "search-terms", Text: "GET /search?q=phone"}, Low: 212, High: 230, Rate: 212, Since: time.Now(), Mode: rules.ModeWatch,
	}}})
	t.Setenv("HOTPARAM_REDIS", server.Addr())
	file := write(t, goodRules)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"aggregator", "--source", ""}, "kafka"},
		{[]string{"aggregator", "--log-level", ""}, "warn"},
		{[]string{"list", "--namespace", ""}, "shop"},
		{[]string{"emit", "--config", file, "--rule", ""}, "search-terms\tGET /search"},
		{[]string{"emit", "--config", file, ""}, "GET /search?q=phone\thot by search-terms"},
		{[]string{"rules", "explain", ""}, "POST"},
		{[]string{"do"}, "doctor"},
		{[]string{"rules", "su"}, "suggest"},
		{[]string{"rules", "suggest", "--f"}, "--from"},
		{[]string{"replay", "--format", ""}, "caddy"},
	} {
		r := hotparamCommand(t, append([]string{"__complete"}, test.args...)...)
		if r.code != exitOK || !strings.Contains("\n"+r.out, "\n"+test.want) {
			t.Errorf("%q: exit code %d, want %q in\n%s%s", test.args, r.code, test.want, r.out, r.err)
		}
	}
	// Without Redis there is nothing to complete, and the answer comes soon.
	t.Setenv("HOTPARAM_REDIS", unreachable(t))
	start := time.Now()
	if r := hotparamCommand(t, "__complete", "list", "--namespace", ""); r.code != exitOK || strings.Contains(r.out, "shop") || time.Since(start) > 10*time.Second {
		t.Errorf("without Redis, after %v: exit code %d\n%s", time.Since(start), r.code, r.out)
	}
}

func TestListNamesTheNamespacesThatExist(t *testing.T) {
	server := testenv.Redis(t)
	hotparamCommand(t, "list", "--redis", server.Addr()).exits(t, exitOK, "nothing is hot", "for this or any other namespace")
	publish(t, server, published.Change{})
	hotparamCommand(t, "list", "--redis", server.Addr(), "--namespace", "shpo").exits(t, exitOK, "nothing is hot", "some do for shop: choose one with --namespace")
	r := hotparamCommand(t, "list", "--redis", server.Addr(), "--namespace", "shop")
	if r.exits(t, exitOK, "nothing is hot"); strings.Contains(r.err, "there are") {
		t.Errorf("stderr: %s", r.err)
	}
}

func TestLintManyFiles(t *testing.T) {
	good, bad := write(t, goodRules), write(t, "rules: []")
	hotparamCommand(t, "rules", "lint", good, good).exits(t, exitOK, "search-terms")
	r := hotparamCommand(t, "rules", "lint", bad, good)
	r.exits(t, exitConfig, bad+":1:", "rules is empty", good+": good")
	withInput(t, goodRules, "rules", "lint", "-").exits(t, exitOK, "-: good, 1 rule")
	withInput(t, "rules: []", "rules", "lint", "-").exits(t, exitConfig, "-:1:")
	r = hotparamCommand(t, "rules", "lint", "--json", bad, good, bad)
	var problems []map[string]any
	decodeJSON(t, r.out, &problems)
	if r.code != exitConfig || len(problems) != 2 {
		t.Errorf("exit code %d, %s", r.code, r.out)
	}
}
