package deploy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type dashboard struct {
	Title, UID string
	Panels     []dashboardPanel
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

type dashboardPanel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Links                    []struct{ Title, URL string }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("grafana/hotparam.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The dashboard has its rows. Each panel has a description, a link to a section of the runbook,
// its own place, and expressions with existing metrics and labels.
func TestDashboard(t *testing.T) {
	d, runbook, metrics := readDashboard(t), readRunbook(t), readMetricLabels(t)
	var rows []string
	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	used := make(map[string]bool)
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: id %d is not its own", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				place := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[place]; ok || place[0] >= 24 {
					t.Fatalf("%s overlaps %s, or the edge", p.Title, other)
				}
				taken[place] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if len(p.Description) < 40 || len(p.Targets) == 0 || len(p.Links) != 1 {
			t.Errorf("%s: it has a description of %d bytes, %d expressions and %d links", p.Title, len(p.Description), len(p.Targets), len(p.Links))
			continue
		}
		section, ok := strings.CutPrefix(p.Links[0].URL, runbookURL)
		if _, found := runbook[section]; !ok || !found {
			t.Errorf("%s: the runbook has no section %q", p.Title, p.Links[0].URL)
		}
		if len(rows) == 1 && !strings.Contains(shownIn(runbook[section]), "*"+p.Title+"*") {
			t.Errorf("the runbook's section %s does not say that panel %s shows it", section, p.Title)
		}
		for _, target := range p.Targets {
			checkExpression(t, p.Title, target.Expr, metrics)
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !legendHas(target.Expr, label[1]) {
					t.Errorf("%s: %q has no label %s for its legend", p.Title, target.Expr, label[1])
				}
			}
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				used[name] = true
			}
		}
	}
	want := []string{
		"Is all well", "What is hot", "Refused and shadowed", "Counts: in, lost, dropped", "Detector: memory and floor",
		"Redis: publishing", "Rules", "Members", "In the application",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q", rows)
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			checkExpression(t, v.Name, v.Definition, metrics)
		}
	}
	// The metrics of each alert are on the dashboard, where one looks next.
	for _, rule := range readAlerts(t) {
		for _, name := range metricName.FindAllString(rule.Expr, -1) {
			if !used[name] && !slices.Contains([]string{"up", "hotparam_build_info"}, name) {
				t.Errorf("no panel shows %s, which %s is about", name, rule.Alert)
			}
		}
	}
}

// shownIn returns the part of a runbook section that says where its fault shows.
func shownIn(section string) string {
	_, text, _ := strings.Cut(section, "\n- **Shows** ")
	text, _, _ = strings.Cut(text, "\n- **")
	return text
}

// Everything that the runbook names exists: panels of the dashboard's first row, and doctor's
// checks.
func TestRunbookNamesWhatShowsAFault(t *testing.T) {
	text, err := os.ReadFile("../docs/RUNNING.md")
	if err != nil {
		t.Fatal(err)
	}
	panels, n := readDashboard(t).Panels, 0
	for name, section := range readRunbook(t) {
		shown := shownIn(section)
		for _, m := range regexp.MustCompile(`\*([^*`+"`"+`]+)\*`).FindAllStringSubmatch(shown, -1) {
			n++
			if !slices.ContainsFunc(panels, func(p dashboardPanel) bool { return p.Type == "stat" && p.Title == m[1] }) {
				t.Errorf("%s: there is no panel %s", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(shown, -1) {
			n++
			if !regexp.MustCompile("(?m)^\\| .*`" + m[1] + "`.* \\|").MatchString(string(text)) {
				t.Errorf("%s: RUNNING.md has no check %s of doctor", name, m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("the runbook names %d panels and checks", n)
	}
}

// legendHas reports whether the series of an expression keep a label. They keep the labels that
// the expression groups by, or all if it does not aggregate.
func legendHas(expression, label string) bool {
	if !regexp.MustCompile(`\b(?:sum|max|min|count|avg)\b`).MatchString(expression) {
		return true
	}
	m := grouping.FindStringSubmatch(expression)
	return m != nil && slices.Contains(regexp.MustCompile(`\w+`).FindAllString(m[1], -1), label)
}
