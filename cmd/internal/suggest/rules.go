package suggest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/rules"
)

// rulesOf returns the rules file with thresholds at a fraction, part, of each parameter's peak.
func rulesOf(params []*Param, part float64) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, p := range params {
		b.WriteString(p.rules(rate(p.threshold(part), p.window)))
	}
	return b.String()
}

// rules returns the parameter's rule with a threshold.
func (p *Param) rules(hot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  - id: %s\n    match: {route: %s}\n    by: [%s]\n    hot: %s\n", p.rule, quote(p.Route), quote(p.Name), p.hot(hot))
	if len(p.Usual) > 0 {
		b.WriteString("    except:\n")
	}
	for _, u := range p.Usual {
		fmt.Fprintf(&b, "      - {values: {%s: %s}, action: allow} # %s\n", quote(p.Name), quote(u.Value), u.reason())
	}
	return b.String()
}

// hot returns the field hot of the rule with a threshold.
func (p *Param) hot(threshold string) string {
	if p.Jump == "" {
		return threshold
	}
	return fmt.Sprintf("{jump: %s, min: %s} # a value that no rule can name is always frequent, with up to %s", p.Jump, threshold, rate(p.steady, p.window))
}

// reason describes why a value is excepted.
func (u *Usual) reason() string {
	share := Percent(u.Share)
	if u.None {
		return share + " of the requests: it seems to mean none"
	}
	return share + " of the requests: it is always frequent"
}

// proposal returns the rule as proposed, in shadow mode.
func (p *Param) proposal() string {
	return fmt.Sprintf("%s    limit: {rate: %s, on_limit: shadow} # %s\n", p.rules(p.Threshold), p.Limit, p.RefusedWords())
}

// RefusedWords describes the requests that the limit would have refused.
func (p *Param) RefusedWords() string {
	if p.Refused == 0 {
		return "would have refused nothing"
	}
	values := "1 value"
	if p.RefusedValues != 1 {
		values = strconv.Itoa(p.RefusedValues) + " values"
	}
	return fmt.Sprintf("would have refused %d of %d requests (%s), of %s", p.Refused, p.Requests, Percent(p.RefusedShare()), values)
}

// RefusedShare returns the fraction of the parameter's requests that its limit would have
// refused.
func (p *Param) RefusedShare() float64 { return float64(p.Refused) / float64(p.Requests) }

// RefusesMuch reports whether the proposed limit refuses so much that people should check it
// before they use it.
func (p *Param) RefusesMuch() bool { return p.Threshold != "" && p.RefusedShare() > muchRefused }

const muchRefused = 0.03

// Percent formats a share with enough digits to distinguish it from zero.
func Percent(share float64) string {
	switch percent := 100 * share; {
	case percent > 0 && percent < 0.1:
		return "<0.1%"
	default:
		return fmt.Sprintf("%.1f%%", percent)
	}
}

// named sets the id of the parameter's rule, and reports whether a rule can name the parameter.
func (s *search) named(p *Param) bool {
	p.rule = ruleID(p.Route, p.Name, s.ids())
	file, err := config.Parse("", []byte(rulesOf([]*Param{p}, 1)))
	if err != nil || !utf8.ValidString(p.Name) {
		return false
	}
	// A parameter's name may be a keyword in a rule.
	selection := file.Rules.Rules[0].By
	name := strings.TrimPrefix(p.Name, "query:")
	return selection.Kind == rules.ByNames && len(selection.Names) == 1 && strings.TrimPrefix(selection.Names[0].Source.String()+":"+selection.Names[0].Name, ":") == name
}

// ids returns the ids of the rules.
func (s *search) ids() (ids []string) {
	for _, p := range s.params {
		ids = append(ids, p.rule)
	}
	return ids
}

// quote quotes any text for YAML.
func quote(s string) string { return strconv.QuoteToASCII(s) }

// ruleID derives an id of a rule from its route and the name of its parameter. It is none of those
// that are taken.
func ruleID(route, parameter string, taken []string) string {
	_, path, _ := strings.Cut(route, " ")
	_, name, found := strings.Cut(parameter, ":")
	if !found {
		name = parameter
	}
	var words []string
	for word := range strings.FieldsFuncSeq(path, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		words = append(words, strings.ToLower(word))
	}
	words = words[max(0, len(words)-2):]
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		if word = strings.ToLower(word); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	id := strings.Join(words, "-")
	if len(id) > 40 {
		id = strings.Trim(id[len(id)-40:], "-")
	}
	if id == "" || id[0] >= '0' && id[0] <= '9' {
		id = "rule-" + id
	}
	unique := id
	for n := 2; slices.Contains(taken, unique); n++ {
		unique = id + "-" + strconv.Itoa(n)
	}
	return unique
}

// rate formats a threshold in the syntax of rules.
func rate(n int64, d time.Duration) string {
	per := map[time.Duration]string{time.Second: "s", 10 * time.Second: "10s", time.Minute: "1m", 10 * time.Minute: "10m"}[d]
	return strconv.FormatInt(n, 10) + "/" + per
}
