package alerts

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// panel is a panel of the dashboard that shows a number with a colour.
type panel struct {
	Title   string
	Targets []struct{ Expr string }

	FieldConfig struct {
		Defaults struct {
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64 // nil: from the least value on
				}
			}
		}
	}
}

// readPanels returns the panels of the dashboard by their titles.
func readPanels(t *testing.T) map[string]panel {
	t.Helper()
	text := testenv.ReadFile(t, "../../../deploy/grafana/hotparam.json")
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
		t.Fatal(err)
	}
	panels := make(map[string]panel)
	for _, p := range dashboard.Panels {
		panels[p.Title] = p
	}
	return panels
}

// colour returns the panel's colour for a stack now, or "no data".
func (p panel) colour(server *real.PrometheusServer, s *alertStack) string {
	expression := strings.NewReplacer("$aggregator", s.name+"/aggregator", "$application", s.job(), "$__rate_interval", "3s", "[1h]", "[1m]").Replace(p.Targets[0].Expr)
	values := server.Values(expression)
	if len(values) == 0 {
		return "no data"
	}
	colour := ""
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if step.Value == nil || values[0] >= *step.Value {
			colour = step.Color
		}
	}
	return colour
}

// section holds the places in which a fault shows, as named by a section of the runbook.
type section struct {
	name   string
	panels []string
	check  string // doctor's check
}

var (
	shows      = regexp.MustCompile(`(?s)\n- \*\*Shows\*\* (.+?) and in doctor's ` + "`([a-z]+)`")
	panelTitle = regexp.MustCompile(`\*([^*]+)\*`)
)

// sectionsOf returns the sections of the runbook that name any of the alerts.
func sectionsOf(t *testing.T, alerts []string) (sections []section) {
	t.Helper()
	text := testenv.ReadFile(t, "../../../docs/RUNBOOK.md")
	for _, part := range strings.Split(text, "\n## ")[1:] {
		if !slices.ContainsFunc(alerts, func(alert string) bool { return strings.Contains(part, "`"+alert+"`: ") }) {
			continue
		}
		s := section{}
		s.name, _, _ = strings.Cut(part, "\n")
		m := shows.FindStringSubmatch(part)
		if m == nil {
			t.Fatalf("runbook, %s: it does not say which panel and which of doctor's checks show it", s.name)
		}
		for _, title := range panelTitle.FindAllStringSubmatch(m[1], -1) {
			s.panels = append(s.panels, title[1])
		}
		s.check = m[2]
		sections = append(sections, s)
	}
	return sections
}
