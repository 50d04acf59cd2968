//go:build real

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/published"
)

// axe is the version of axe-core, Deque's accessibility checker.
const axe = "axe-core@4.14.1"

// withoutBarriers checks with axe that each view, empty and full, has no barriers. Themes differ
// in contrast, and widths in layout, so not every pair of them is checked.
func withoutBarriers(t *testing.T, tab *real.Tab) {
	source := axeSource(t)
	full := manyKeys(40, 0)
	full.Members = troubledMembers()
	full.Suspects = []published.Hot{search("maybe", 120)}
	full.Controls = []published.Control{{Key: full.Hot[2].Key, Action: published.ControlBlock, Since: time.Now(), Until: time.Now().Add(time.Minute), Why: "scraper", By: "ops"}}
	for _, look := range []struct {
		theme    string
		width    int
		snapshot *live.Snapshot
		events   []live.Event
	}{
		{"light", 1360, &live.Snapshot{Published: true}, nil},
		{"dark", 390, &live.Snapshot{Published: true, Summary: quietSummary()}, manyEvents(3)},
		{"light", 1360, full, manyEvents(30)},
		{"dark", 1360, full, manyEvents(30)},
		{"light", 390, full, manyEvents(30)},
	} {
		view := newFakeView(t)
		view.events = look.events
		f := serveView(t, view, "")
		view.show(look.snapshot)
		tab.Resize(look.width, 820)
		tab.Open(f.server.URL)
		tab.Wait("document.getElementById('link').dataset.state === 'live' && document.getElementById('facts').children.length > 0")
		tab.Eval("while (document.documentElement.dataset.theme !== '"+look.theme+"') document.getElementById('theme-button').click()", nil)
		tab.Eval(source, nil)
		for _, keys := range [][]string{{"1"}, {"j", "Enter"}, {"Escape", "2"}, {"3"}, {"4"}, {"5"}, {"6"}} {
			tab.Press(keys...)
			checkBarriers(t, tab, fmt.Sprintf("%s, %d px, %d keys, after %s", look.theme, look.width, len(look.snapshot.Hot), strings.Join(keys, " ")))
		}
	}
}

// axeSource returns the script of axe.
func axeSource(t *testing.T) string {
	t.Helper()
	_, modules := real.Node(t, axe)
	source, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source) + "\n;0"
}

// checkBarriers reports what axe finds on a page that has its script.
func checkBarriers(t *testing.T, tab *real.Tab, where string) {
	t.Helper()
	var found []string
	tab.Eval(`axe.run({resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + " at " + n.target.join(" ") + ": " + n.failureSummary.split("\n").slice(1).join("; "))))`, &found)
	for _, finding := range found {
		t.Errorf("%s: %s", where, finding)
	}
}

// heatWithoutBarriers does the same for the heat map, its selection and its table.
func heatWithoutBarriers(t *testing.T, tab *real.Tab) {
	source := axeSource(t)
	start := time.Now().Add(-time.Hour).Unix()
	for _, look := range []struct {
		theme string
		width int
	}{{"light", 1360}, {"dark", 1360}, {"light", 390}} {
		tab.Prefer("prefers-color-scheme", look.theme)
		tab.Resize(look.width, 820)
		openPast(t, tab, smallPast(start), fmt.Sprintf("from=%d&to=%d", start, start+60))
		tab.Eval(source, nil)
		where := fmt.Sprintf("%s, %d px, ", look.theme, look.width)
		checkBarriers(t, tab, where+"map")
		tab.Eval("document.getElementById('heat-frame').focus()", nil)
		tab.Press("ArrowRight", "Enter")
		tab.Wait("!document.getElementById('heat-panel').hidden")
		checkBarriers(t, tab, where+"selection")
		tab.Press("Escape")
		tab.Eval("document.getElementById('heat-table-button').click()", nil)
		checkBarriers(t, tab, where+"table")
	}
	clean(t, tab)
}
