package config

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

var hotSection = section{
	name: "hot", prefix: "hot.",
	fields: settings{
		{"rate", shown(schemaTerms), "", "Hot at this count within a window: 200/s, 60/1m, 10MB/10s"},
		{"share", shown(schemaForm(`%`)), "", "Hot at this part of the route's requests: 20%"},
		{"jump", shown(schemaForm(`[xX]`)), "", "Hot at this multiple of the key's earlier count: 8x"},
		{"top", shown(schemaWhole(1, 1000)), "", "Hot if it is among this many keys with the highest counts"},
		{"cost", shown(schemaChoice("auto")), "", "Hot if it slows the others down by the time that it takes: auto"},
		{"min", shown(schemaText), "", "The least count for share, jump and top: 50, or 50/10s"},
		{"window", shown(schemaDuration), "", "The window of share, jump and top: 10s"},
		{"over", shown(schemaChoice("day")), "", "The past that jump compares with: day is the same hour of the days before"},
		{"exit", shown(schemaText), "", "The key cools below this: 80%, 160/s, 160. Default: 80%"},
		{"hold", shown(schemaDuration), "", "The least time for which a key stays hot. Default: 10s"},
		{"cool_down", shown(schemaDuration), "", "How long a key must stay below exit to cool. Default: 5s"},
	},
	example: "for example hot: 200/s, or hot: {rate: 200/s, exit: 80%, hold: 10s}",
}

// kindFields are the fields that set what a count is compared with, by kind.
var kindFields = hotSection.fields.names()[:rules.Cost+1]

// hot reads the thresholds of a rule: one, or a list of them.
func (d *decoder) hot(n *fileNode, unit rules.Unit) []rules.Threshold {
	items := oneOrItems(n)
	if len(items) == 0 {
		d.reject(n, hotSection.example, "hot: the list is empty")
	}
	var hot []rules.Threshold
	for _, item := range items {
		hot = append(hot, d.threshold(item, unit))
	}
	return hot
}

// threshold reads one threshold, in full or as one word.
func (d *decoder) threshold(n *fileNode, unit rules.Unit) (t rules.Threshold) {
	var v values
	if n.kind == scalarKind {
		t = d.terms(n, "hot", rules.FixedRate, unit)
	} else if v = d.section(n, hotSection); v != nil {
		t = d.kind(n, v, unit)
	} else {
		return t
	}
	d.minAndWindow(n, v, &t, unit)
	d.past(v.get("over"), &t)
	t = t.WithDefaults()
	d.exit(v.get("exit"), &t, unit)
	t.Hold = d.duration(v.get("hold"), "hot.hold", "hold is the least time for which a key stays hot; 10s if it is left out", rules.DefaultHold)
	t.CoolDown = d.duration(v.get("cool_down"), "hot.cool_down", "cool_down is how long a key must stay below the exit to cool; 5s if it is left out", rules.DefaultCoolDown)
	return t
}

// findsCost reports whether a threshold of a rule's hot is a cost.
func findsCost(n *fileNode) bool {
	return n != nil && slices.ContainsFunc(oneOrItems(n), func(item *fileNode) bool {
		return slices.ContainsFunc(item.fields, func(f mapField) bool { return f.name == "cost" })
	})
}

// kind reads the one field that sets what a count is compared with.
func (d *decoder) kind(n *fileNode, v values, unit rules.Unit) (t rules.Threshold) {
	const none = -1
	kind := none
	for i, name := range kindFields {
		switch {
		case !v.has(name):
		case kind == none:
			kind = i
		case v.get(name) != nil:
			d.reject(v.get(name), "if each of several makes a key hot, write a list: hot: [{rate: 200/s}, {share: 20%, min: 50/s}]",
				"hot.%s: the threshold has hot.%s already", name, kindFields[kind])
		}
	}
	if kind == none {
		d.reject(n, hotSection.example, "hot has none of %s", strings.Join(kindFields, ", "))
		return t
	}
	name := kindFields[kind]
	return d.terms(v.get(name), "hot."+name, rules.ThresholdKind(kind), unit)
}

// terms reads what a count is compared with. A rate may also be a share or a jump, depending
// on its text.
func (d *decoder) terms(n *fileNode, what string, kind rules.ThresholdKind, unit rules.Unit) rules.Threshold {
	s, ok := d.scalar(n, what)
	if !ok {
		return rules.Threshold{Kind: kind}
	}
	if kind == rules.Cost {
		d.choice(n, what, "auto")
		return rules.Threshold{Kind: kind, Rate: rules.CostRate}
	}
	if kind == rules.Top {
		return rules.Threshold{Kind: kind, Top: wholeNumber(s)}
	}
	t, reason := parseTerms(s, unit)
	switch {
	case kind != rules.FixedRate && t.Kind != kind:
		reason = "want " + map[rules.ThresholdKind]string{rules.Share: "a percentage", rules.Jump: "a multiple"}[kind]
		t.Kind = kind
		fallthrough
	case reason != "":
		d.reject(n, termsHint(s, t.Kind, unit), "%s %s: %s", what, quote(s), reason)
	}
	return t
}

func termsHint(s string, kind rules.ThresholdKind, unit rules.Unit) string {
	switch kind {
	case rules.Share:
		return "20% is a fifth of the route's count, 20%/1m the same within a minute"
	case rules.Jump:
		return "8x is eight times what the key had before, 8x/1m the same within a minute"
	}
	return rateHint(s, unit, "200/s is 200 within a second, 60/1m is 60 within a minute")
}

// minAndWindow reads the least count and the window of a threshold that compares.
func (d *decoder) minAndWindow(n *fileNode, v values, t *rules.Threshold, unit rules.Unit) {
	if t.Kind == rules.Cost {
		for _, name := range []string{"min", "window", "exit", "hold", "cool_down"} {
			if field := v.get(name); field != nil {
				d.reject(field, "remove it: cost: auto needs no number", "hot.%s: a cost has none", name)
			}
		}
		return
	}
	if t.Kind == rules.FixedRate {
		for _, name := range []string{"min", "window"} {
			if field := v.get(name); field != nil {
				d.reject(field, "remove it: 2000/10s is 2000 within a window of 10s", "hot.%s: a rate has its count and its window itself", name)
			}
		}
		return
	}
	min, window := v.get("min"), v.get("window")
	if s, ok := d.scalar(min, "hot.min"); ok {
		reason := ""
		rate := rules.Rate{Per: t.Rate.Per}
		if strings.Contains(s, "/") {
			rate, reason = parseRate(s, unit, quantities[unit].maxRate)
		} else if rate.N, ok = parseCount(s, unit); !ok {
			reason = "want " + quantities[unit].want + ", or a rate"
		}
		if reason != "" {
			d.reject(min, rateHint(s, unit, "min is the count below which no key is hot, for example 50/10s"), "hot.min %s: %s", quote(s), reason)
			rate = rules.Rate{N: 1, Per: t.Rate.Per}
		}
		d.sameWindow(min, "hot.min", t, rate.Per)
		t.Rate.N = rate.N
	}
	if window != nil {
		length := d.duration(window, "hot.window", "for example window: 10s", cmp.Or(t.Rate.Per, rules.MinWindow))
		d.sameWindow(window, "hot.window", t, cmp.Or(length, invalid)) // 0 means no default here
	}
	if t.Rate.N == 0 && unit != rules.Requests && unit != anyUnit {
		d.reject(n, "min is the count below which no key is hot, for example min: "+strings.Trim(strings.Fields(quantities[unit].rate)[0], `"`),
			"hot.min is missing: it has a default only for count: requests")
	}
	withLeast(t)
}

// past reads the past that a jump compares with.
func (d *decoder) past(n *fileNode, t *rules.Threshold) {
	s, ok := d.scalar(n, "hot.over")
	if !ok {
		return
	}
	const hint = "over: day compares a key with its own same hour of the days before; without it, with the ten windows before"
	if t.Over, ok = rules.ParseOver(s); !ok {
		d.reject(n, hint, "hot.over %s: want day", quote(s))
	}
}

// sameWindow sets the window of a threshold. It reports an error if another one is set.
func (d *decoder) sameWindow(n *fileNode, what string, t *rules.Threshold, window time.Duration) {
	if t.Rate.Per != 0 && window != t.Rate.Per {
		d.reject(n, "say it once", "%s %s: the threshold has a window of %v already", what, quote(n.text), t.Rate.Per)
	}
	t.Rate.Per = window
}

// defaultLeast is the default count of requests within the window below which no key becomes
// hot by comparison.
const defaultLeast = 10

// withLeast sets the defaults of the least count and of the window in a threshold that
// compares.
func withLeast(t *rules.Threshold) {
	if t.Kind != rules.FixedRate {
		t.Rate.N, t.Rate.Per = cmp.Or(t.Rate.N, defaultLeast), cmp.Or(t.Rate.Per, rules.MinWindow)
	}
}

// exit reads the exit of a threshold: a share of it or, for an absolute threshold, a rate over
// the same window or a count.
func (d *decoder) exit(n *fileNode, t *rules.Threshold, unit rules.Unit) {
	s, ok := d.scalar(n, "hot.exit")
	if !ok {
		return
	}
	s = strings.TrimSpace(s)
	forms := "a share of the threshold (80%), a rate over the same window (160/s) or a count (160)"
	if t.Kind != rules.FixedRate {
		forms = "80% lowers what a hot key is compared with to four fifths"
	}
	if percent, found := strings.CutSuffix(s, "%"); found {
		exit, err := rules.ParseFraction(strings.TrimSpace(percent), 100)
		switch {
		case errors.Is(err, rules.ErrDigits):
			d.reject(n, forms, "hot.exit %s: %v", quote(s), err)
		case err != nil || exit.Cmp(1) > 0 || exit.Num*100 < exit.Den:
			d.reject(n, forms, "hot.exit %s: want 1%% to 100%%", quote(s))
		default:
			t.Exit = exit
		}
		return
	}
	if t.Kind != rules.FixedRate {
		d.reject(n, forms, "hot.exit %s: want a percentage, because the threshold is not a rate", quote(s))
		return
	}
	count, ok := parseCount(s, unit)
	if strings.Contains(s, "/") {
		rate, reason := parseRate(s, unit, quantities[unit].maxRate)
		if reason == "" && t.Rate.Per != 0 && rate.Per != t.Rate.Per {
			reason = "use the window of hot.rate, " + t.Rate.String()
		}
		if reason != "" {
			d.reject(n, forms, "hot.exit %s: %s", quote(s), reason)
			return
		}
		count, ok = rate.N, true
	}
	switch {
	case !ok:
		d.reject(n, forms, "hot.exit %s: want a share, a rate or %s", quote(s), quantities[unit].want)
	case t.Rate.N != 0 && count > t.Rate.N:
		d.reject(n, "a key would be hot and cool at once: take at most hot.rate", "hot.exit %s is above hot.rate %s", quote(s), t.Rate)
	case t.Rate.N != 0:
		t.Exit = rules.NewFraction(count, t.Rate.N)
	}
}
