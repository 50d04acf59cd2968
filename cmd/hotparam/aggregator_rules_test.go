package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/testenv"
)

// The rules of a file that is replaced, as Kubernetes does it, are soon in force. A file that
// cannot be used changes nothing. It is named in the log, the metrics and /-/ready until it is
// fixed.
func TestChangedFileIsInForce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "hotparam.yaml")
	n := 0
	put := func(text string) (version string) {
		t.Helper()
		n++
		file, link := filepath.Join(dir, fmt.Sprint("data-", n)), filepath.Join(dir, "link")
		for _, err := range []error{os.WriteFile(file, []byte(text), 0o600), os.Symlink(file, link), os.Rename(link, path)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		parsed, err := config.Parse("", []byte(text))
		if err != nil {
			return ""
		}
		return parsed.Rules.Version
	}
	const rule = "namespace: shop\nrules:\n  - {id: terms, match: {route: /search}, by: [q], hot: %s}\n"
	version := put(fmt.Sprintf(rule, "100/10s"))
	daemon := startDaemon(t, "--config", path, "--redis", "redis://"+miniredis.RunT(t).Addr(), "--listen", fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)))
	inForce := func(version string, reloads, rejected, refused int) {
		t.Helper()
		eventually(t, daemon.serves(
			fmt.Sprintf(`hotparam_rules_info{version="%s"} 1`, version),
			fmt.Sprint("hotparam_rules_reloads_total ", reloads), fmt.Sprint("hotparam_rules_rejected_total ", rejected), fmt.Sprint("hotparam_rules_refused ", refused),
		))
	}
	inForce(version, 0, 0, 0)
	version = put(fmt.Sprintf(rule, "200/10s"))
	inForce(version, 1, 0, 0)

	put(fmt.Sprintf(rule, "many"))
	inForce(version, 1, 1, 1)
	daemon.find(`(the rules stay as they are).* line=3 .*hint=`)
	if got := daemon.get("/-/ready"); !strings.Contains(got, "rules of version "+version+" stay in force: "+path+":3: ") {
		t.Errorf("/-/ready: %q", got)
	}
	put(strings.Replace(fmt.Sprintf(rule, "300/10s"), "shop", "other", 1))
	inForce(version, 1, 2, 1)
	daemon.find(`(the namespace is \\"other\\" now)`)

	version = put(fmt.Sprintf(rule, "300/10s") + "aggregator: {memory: 32MiB}\n")
	inForce(version, 2, 2, 0)
	daemon.find(`(they need a restart).* sections=aggregator`)
	if same := put(fmt.Sprintf(rule, "300/10s") + "statsd: {encoding: strict}\n"); same != version {
		t.Errorf("settings that decide nothing make version %s of %s", same, version)
	}
	daemon.find(`(they need a restart).* sections=statsd`)
	inForce(version, 2, 2, 0)
	if got := daemon.get("/-/ready"); strings.Contains(got, "in force") {
		t.Errorf("/-/ready of a good file: %q", got)
	}
}
