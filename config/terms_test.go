package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// ruleOf returns a rule with these fields.
func ruleOf(t testing.TB, lines ...string) rules.Rule {
	t.Helper()
	f, err := Parse("f.yaml", []byte(rule(lines...)))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rules.Validate(); err != nil {
		t.Fatal(err)
	}
	return f.Rules.Rules[0]
}

func per(n int64, d time.Duration) rules.Rate { return rules.Rate{N: n, Per: d} }

func TestThresholds(t *testing.T) {
	const hold, cool = 10 * time.Second, 5 * time.Second
	exit := rules.Percent(80)
	share := rules.Threshold{Kind: rules.Share, Factor: rules.Percent(20), Rate: per(10, time.Second), Exit: exit, Hold: hold, CoolDown: cool}
	jump := rules.Threshold{Kind: rules.Jump, Factor: rules.Fraction{Num: 8, Den: 1}, Rate: per(10, time.Second), Exit: exit, Hold: hold, CoolDown: cool}
	top := rules.Threshold{Kind: rules.Top, Top: 10, Rate: per(10, time.Second), Exit: exit, Hold: hold, CoolDown: cool}
	with := func(t rules.Threshold, rate rules.Rate, percent int64) rules.Threshold {
		t.Rate, t.Exit = rate, rules.Percent(percent)
		return t
	}
	for text, want := range map[string][]rules.Threshold{
		"200/s":                              {rules.NewThreshold(per(200, time.Second))},
		"{rate: 200/s}":                      {rules.NewThreshold(per(200, time.Second))},
		"[200/s]":                            {rules.NewThreshold(per(200, time.Second))},
		"[200/s, 5000/1m]":                   {rules.NewThreshold(per(200, time.Second)), rules.NewThreshold(per(5000, time.Minute))},
		"20%":                                {share},
		"20 %":                               {share},
		"{rate: 20%}":                        {share},
		"{share: 20%}":                       {share},
		"20%/1m":                             {with(share, per(10, time.Minute), 80)},
		"{share: 20%/1m}":                    {with(share, per(10, time.Minute), 80)},
		"{share: 20%/1m, min: 50}":           {with(share, per(50, time.Minute), 80)},
		"{share: 20%, min: 50}":              {with(share, per(50, time.Second), 80)},
		"{share: 20%, min: 50/10s}":          {with(share, per(50, 10*time.Second), 80)},
		"{share: 20%, window: 10s}":          {with(share, per(10, 10*time.Second), 80)},
		"{share: 20%, window: 10s, min: 50}": {with(share, per(50, 10*time.Second), 80)},
		"{share: 20%/10s, window: 10s, min: 50/10s}":  {with(share, per(50, 10*time.Second), 80)},
		"{share: 20%, min: 50, exit: 60%}":            {with(share, per(50, time.Second), 60)},
		"{rate: 20%, min: 50/s, exit: 50%, hold: 0s}": {{Kind: rules.Share, Factor: rules.Percent(20), Rate: per(50, time.Second), Exit: rules.Percent(50), CoolDown: cool}},
		"8x":                          {jump},
		"8X":                          {jump},
		"{rate: 8x}":                  {jump},
		"{jump: 8x/1h}":               {with(jump, per(10, time.Hour), 80)},
		"{jump: 8x, over: day}":       {func() rules.Threshold { t := jump; t.Over = rules.OverDay; return t }()},
		"{jump: 1.5x, cool_down: 3s}": {{Kind: rules.Jump, Factor: rules.Percent(150), Rate: per(10, time.Second), Exit: exit, Hold: hold, CoolDown: 3 * time.Second}},
		"{top: 10}":                   {top},
		"{top: 10, min: 20/5s}":       {with(top, per(20, 5*time.Second), 80)},
		"[200/s, 20%, {top: 10}, 8x]": {rules.NewThreshold(per(200, time.Second)), share, top, jump},
		"\n      - rate: 200/s\n        exit: 100\n      - 20%": {with(rules.NewThreshold(per(200, time.Second)), per(200, time.Second), 50), share},
	} {
		if got := ruleOf(t, "hot: "+text).Hot; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	r := ruleOf(t, "count: bytes", "hot: [10MB/10s, {share: 20%, min: 1GiB/1h, exit: 50%}, {rate: 3GB/s, exit: 2GB/s}, {rate: 5KB/1m, exit: 4KB}]", "limit: {rate: 512KiB/s, burst: 10MB}",
		"except: [{values: {q: a}, hot: 20MB/10s, limit: 1000/s}]")
	var got []int64
	for _, h := range r.Hot {
		got = append(got, h.Rate.N, h.ExitCount(h.Rate.N))
	}
	got = append(got, r.Limit.Rate.N, r.Limit.Burst, r.Except[0].Rate.N, r.Except[0].Limit.Burst)
	want := []int64{10e6, 8e6, 1 << 30, 1 << 29, 3e9, 2e9, 5000, 4000, 512 << 10, 10e6, 20e6, 1000}
	if r.Count != rules.Bytes || !reflect.DeepEqual(got, want) {
		t.Errorf("bytes: %v %v, want %v", r.Count, got, want)
	}
	r = ruleOf(t, "count: ms", "hot: {rate: 30s/10s, exit: 20000}", "limit: {rate: 500ms/s, burst: 2s}")
	if h := r.Hot[0]; r.Count != rules.Millis || h.Rate != per(30_000, 10*time.Second) || h.ExitCount(h.Rate.N) != 20_000 || r.Limit.Rate != per(500, time.Second) || r.Limit.Burst != 2000 {
		t.Errorf("ms: %+v, limit %+v", r, r.Limit)
	}
	for word, unit := range map[string]rules.Unit{"units": rules.Units, "requests": rules.Requests, "bytes": rules.Bytes, "ms": rules.Millis} {
		if r := ruleOf(t, "count: "+word, "limit: 7/s"); r.Count != unit || *r.Limit != (rules.Limit{Quota: rules.Quota{Algorithm: rules.TokenBucket, Rate: per(7, time.Second), Burst: 7}, Mode: rules.ModeLimit}) {
			t.Errorf("%s: %+v, limit %+v", word, r, r.Limit)
		}
	}
}

func TestBy(t *testing.T) {
	names := []rules.Param{{Name: "q"}, {Source: rules.Path, Name: "id"}}
	for text, want := range map[string]rules.By{
		"all": {Kind: rules.ByAll}, "each": {Kind: rules.ByEach}, "combinations": {Kind: rules.ByCombinations},
		"[q, path:id]":                   {Kind: rules.ByNames, Names: names},
		"{combinations: [q, 'path:id']}": {Kind: rules.ByCombinations, Names: names},
		"[combinations]":                 {Kind: rules.ByNames, Names: []rules.Param{{Name: "combinations"}}},
	} {
		if got := ruleOf(t, "hot: 1/s", "by: "+text).By; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestExceptions(t *testing.T) {
	r := ruleOf(t, "hot: [200/s, 5000/1m]", "by: [q, page, path:id, 'query:a:b', query:id]",
		"block: [{q: x, page: 1}, {'query:a:b': z}]",
		`except: [{values: {q: "phone*"}, action: allow}, {values: {q: ["a*", b], page: [1, 2]}, action: block}, {values: {q: tv}, hot: 1000/1m, limit: {rate: 500/s, burst: 7, on_limit: shadow}}, {values: {q: ""}, limit: 5/s}]`,
		`allow: {"path:id": ["brand-*", true]}`,
	)
	values := func(pairs ...string) []rules.QueryMatch {
		var v []rules.QueryMatch
		for i := 0; i < len(pairs); i += 2 {
			v = append(v, rules.QueryMatch{Name: pairs[i], Value: pairs[i+1]})
		}
		return v
	}
	want := []rules.Exception{
		{Values: values("q", "phone*"), Action: rules.Allow},
		{Values: values("q", "a*", "page", "1"), Action: rules.Block}, {Values: values("q", "a*", "page", "2"), Action: rules.Block},
		{Values: values("q", "b", "page", "1"), Action: rules.Block}, {Values: values("q", "b", "page", "2"), Action: rules.Block},
		{Values: values("q", "tv"), Rate: per(1000, time.Minute), Limit: &rules.Limit{Quota: rules.Quota{Algorithm: rules.TokenBucket, Rate: per(500, time.Second), Burst: 7}, Mode: rules.ModeShadow}},
		{Values: values("q", ""), Limit: &rules.Limit{Quota: rules.Quota{Algorithm: rules.TokenBucket, Rate: per(5, time.Second), Burst: 5}, Mode: rules.ModeLimit}},
		{Values: values("path:id", "brand-*"), Action: rules.Allow}, {Values: values("path:id", "true"), Action: rules.Allow},
		{Values: values("q", "x", "page", "1"), Action: rules.Block}, {Values: values("query:a:b", "z"), Action: rules.Block},
	}
	if !reflect.DeepEqual(r.Except, want) {
		t.Errorf("got\n%+v\nwant\n%+v", r.Except, want)
	}
	// A rule may only block, or only limit some values.
	ruleOf(t, "by: [q]", "block: {q: x}")
	ruleOf(t, "by: [q]", "except: [{values: {q: x}, limit: 5/s}]")
	ruleOf(t, "by: each", "limit: 5/s", "allow: [{q: x}, {page: 1}]")
}

// Exceptions match values in the keys that the rule itself makes.
func TestExceptionsMatchKeys(t *testing.T) {
	r := ruleOf(t, "hot: 1/s", "by: [q, path:id, 'query:a:b', query:id]", `allow: [{"path:id": "7*"}, {"query:a:b": x}, {"query:id": z}]`)
	for _, test := range []struct {
		param rules.Param
		want  bool
	}{
		{rules.Param{Source: rules.Path, Name: "id", Value: "77"}, true},
		{rules.Param{Name: "id", Value: "77"}, false},
		{rules.Param{Name: "id", Value: "z"}, true},
		{rules.Param{Name: "a:b", Value: "x"}, true},
		{rules.Param{Name: "q", Value: "x"}, false},
	} {
		text := rules.Text("GET /u/{id}", test.param)
		if got := r.Exception(text) != nil; got != test.want {
			t.Errorf("%s: %v, want %v", text, got, test.want)
		}
	}
	if strings.Contains(r.Except[2].Values[0].Name, ":") {
		t.Errorf("%+v", r.Except[2])
	}
}
