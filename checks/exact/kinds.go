package exact

import (
	"strings"
	"time"
)

// Kinds returns rules with thresholds of each comparing kind, and of a rate with exceptions, for
// one least count. Their exits are not multiples of 1/min.
func Kinds(keyBy string, least int64, d time.Duration) (rules []RuleSpec) {
	exits := []string{"80%", "50%", "33.3%", "100%", "97.25%"}
	base := NewThreshold(least, d)
	base.Exit = ParseRatio(exits[int(least)%len(exits)])
	base.Hold, base.CoolDown = time.Duration(least%3)*time.Second, time.Duration(least%4)*700*time.Millisecond
	add := func(change func(t *ThresholdSpec)) {
		th := base
		change(&th)
		rules = append(rules, RuleSpec{By: keyBy, Hot: []ThresholdSpec{th}})
	}
	add(func(t *ThresholdSpec) { t.Kind, t.Factor = "share", ParseRatio("20%") })
	add(func(t *ThresholdSpec) { t.Kind, t.Factor = "share", ParseRatio("3.7%") })
	add(func(t *ThresholdSpec) { t.Kind, t.Factor = "jump", ParseRatio("8x") })
	add(func(t *ThresholdSpec) { t.Kind, t.Factor = "jump", ParseRatio("1.3x") })
	add(func(t *ThresholdSpec) { t.Kind, t.Top = "top", 3 })
	add(func(t *ThresholdSpec) { t.Kind, t.Top = "top", 10 })
	if keyBy != "all" {
		name, _, _ := strings.Cut(keyBy, ",")
		if keyBy == "each" {
			name = "q"
		}
		rules = append(rules, RuleSpec{By: keyBy, Hot: []ThresholdSpec{base}, Except: []ExceptionSpec{
			{Name: name, Pattern: "1*", N: 3*least + 1, D: d}, {Name: name, Pattern: "*e", N: least + 2, D: d}, {Name: name, Pattern: "*2*", Action: "allow"},
		}})
	}
	return rules
}
