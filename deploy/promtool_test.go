//go:build real

package deploy_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
)

// Prometheus accepts the rules, and they fire for the time series of their tests.
func TestAlertsByPromtool(t *testing.T) {
	t.Parallel()
	promtool := real.Promtool(t)
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = "prometheus"
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, output)
		}
	}
}

// Prometheus accepts the expressions: promtool reads them as rules.
func TestDashboardByPromtool(t *testing.T) {
	t.Parallel()
	promtool := real.Promtool(t)
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			fmt.Fprintf(&rules, "      - {record: 'panel:%d:%s', expr: %q}\n", p.ID, strings.ToLower(target.RefID),
				strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	write(t, file, rules.String())
	if output, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
