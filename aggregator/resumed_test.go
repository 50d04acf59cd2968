package aggregator

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// No one counted a rule's keys between the start of the process and the reload that added the
// rule. A snapshot that has the rule is therefore not used for its windows.
func TestRulesOfAReloadDoNotResume(t *testing.T) {
	text := []byte("GET /s?q=1")
	hash := rules.Hash(text)
	for _, reloads := range []bool{false, true} {
		first, second := hotRule("r", 100, time.Minute), hotRule("r", 100, time.Minute)
		if reloads {
			first = hotRule("other", 100, time.Minute)
		}
		n := decode.NumberRules(testRules(first))
		d := NewDetector(DetectorConfig{Rules: n.InOrder(), Publisher: newRecorder(), Start: noon})
		next := n.Next(testRules(second))
		d.Reload(next, nil, noon.Add(time.Millisecond))
		number := next.NumberOf("r")
		v := d.rules[number].views[0]
		newest := v.Index(noon)
		d.resume(&snapshot.RuleKey{Rule: number, Text: text, Views: []snapshot.WindowCounts{{
			Counted: snapshot.Counted{
				WindowShape: snapshot.WindowShape{Pane: v.Pane, Panes: v.Panes, Newest: newest},
				Counts:      []snapshot.Pane{{Pane: newest, N: 60}}, Bounds: snapshot.Bounds{Known: newest - 59},
			},
		}}}, hash)
		low, high := v.Span(hash, text, newest, int64(v.Panes))
		if reloads && (low != 0 || high != published.Unknown) || !reloads && (low != 60 || high != 60) {
			t.Errorf("%d to %d if the rule came with a reload: %v", low, high, reloads)
		}
	}
}
