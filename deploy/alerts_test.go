package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type alertRule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func readAlerts(t *testing.T) (rules []alertRule) {
	t.Helper()
	text, err := os.ReadFile("prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []alertRule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	if len(rules) < 10 {
		t.Fatalf("%d alerts", len(rules))
	}
	return rules
}

// Every alert describes its problem and names a section of the runbook, which names the alert. Its
// expression uses existing metrics, and promtool tests it.
func TestAlerts(t *testing.T) {
	tried, err := os.ReadFile("prometheus/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	runbook, metrics := readRunbook(t), readMetricLabels(t)
	for _, rule := range readAlerts(t) {
		if !strings.Contains(string(tried), `"`+rule.Alert+`"`) {
			t.Errorf("%s: alerts_test.yml does not make it fire", rule.Alert)
		}
		if !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) {
			t.Errorf("%s: severity %q", rule.Alert, rule.Labels["severity"])
		}
		for _, name := range []string{"summary", "description"} {
			if rule.Annotations[name] == "" {
				t.Errorf("%s has no %s", rule.Alert, name)
			}
		}
		section, ok := strings.CutPrefix(rule.Annotations["runbook_url"], runbookURL)
		if !ok || !strings.Contains(runbook[section], "`"+rule.Alert+"`") {
			t.Errorf("%s: no section %q of the runbook names it", rule.Alert, section)
		}
		checkExpression(t, rule.Alert, rule.Expr, metrics)
	}
}

const runbookURL = "https://github.com/hotparam/hotparam/blob/main/docs/RUNBOOK.md#"

// readRunbook returns the sections of docs/RUNBOOK.md by their anchors.
func readRunbook(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title), "")
		sections[strings.ReplaceAll(anchor, " ", "-")] = body
	}
	return sections
}

// readMetricLabels returns the labels of all metrics in METRICS.md, which is generated from the
// code. A histogram has its series.
func readMetricLabels(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string][]string{"up": nil, "process_resident_memory_bytes": nil, "process_cpu_seconds_total": nil, "go_goroutines": nil}
	for _, m := range regexp.MustCompile("(?m)^\\| `(hotparam_[a-z_]+)(?:\\{([a-z_,]+)\\})?` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.Split(m[2], ",")
		if m[3] == "histogram" {
			metrics[m[1]+"_bucket"] = append(labels, "le")
			metrics[m[1]+"_sum"], metrics[m[1]+"_count"] = labels, labels
			continue
		}
		metrics[m[1]] = labels
	}
	return metrics
}

var (
	metricName  = regexp.MustCompile(`\b(?:(?:hotparam|process|go)_[a-z_]+|up)\b`)
	selector    = regexp.MustCompile(`\b((?:hotparam|process|go)_[a-z_]+|up)\{([^}]*)\}`)
	matcherName = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping    = regexp.MustCompile(`\b(?:by|without|on)\s*\(([^)]*)\)`)
)

// checkExpression reports unknown metrics in an expression, labels in selectors that their metrics
// do not have, and grouping labels that none of the metrics has.
func checkExpression(t *testing.T, where, expression string, metrics map[string][]string) {
	t.Helper()
	ofTargets := []string{"job", "instance", "alertname", "le"}
	bare := selector.ReplaceAllString(grouping.ReplaceAllString(expression, ""), "$1")
	names := metricName.FindAllString(bare, -1)
	if len(names) == 0 {
		t.Errorf("%s: %q has no metric", where, expression)
	}
	all := slices.Clone(ofTargets)
	for _, name := range names {
		labels, ok := metrics[name]
		if !ok {
			t.Errorf("%s: there is no metric %s", where, name)
		}
		all = append(all, labels...)
	}
	for _, m := range selector.FindAllStringSubmatch(expression, -1) {
		for _, label := range matcherName.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(metrics[m[1]], label[1]) && !slices.Contains(ofTargets, label[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], label[1])
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !slices.Contains(all, label) {
				t.Errorf("%s: none of %q has the label %s", where, names, label)
			}
		}
	}
}
