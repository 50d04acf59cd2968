package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
)

// ruleOf reads a rule with these fields.
func ruleOf(t testing.TB, lines ...string) hotparam.Rule {
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

func per(n int64, d time.Duration) hotparam.Rate { return hotparam.Rate{N: n, Per: d} }

func TestThresholds(t *testing.T) {
	const hold, cool = 10 * time.Second, 5 * time.Second
	exit := hotparam.Percent(80)
	share := hotparam.Threshold{Kind: hotparam.Share, Factor: hotparam.Percent(20), Rate: per(10, time.Second), Exit: exit, Hold: hold, CoolDown: cool}
	jump := hotparam.Threshold{Kind: hotparam.Jump, Factor: hotparam.Fraction{Num: 8, Den: 1}, Rate: per(10, time.Second), Exit: exit, Hold: hold, CoolDown: cool}
	top := hotparam.Threshold{Kind: hotparam.Top, Top: 10, Rate: per(10, time.Second), Exit: exit, Hold: hold, CoolDown: cool}
	with := func(t hotparam.Threshold, rate hotparam.Rate, percent int64) hotparam.Threshold {
		t.Rate, t.Exit = rate, hotparam.Percent(percent)
		return t
	}
	for text, want := range map[string][]hotparam.Threshold{
		"200/s":                              {hotparam.NewThreshold(per(200, time.Second))},
		"{rate: 200/s}":                      {hotparam.NewThreshold(per(200, time.Second))},
		"[200/s]":                            {hotparam.NewThreshold(per(200, time.Second))},
		"[200/s, 5000/1m]":                   {hotparam.NewThreshold(per(200, time.Second)), hotparam.NewThreshold(per(5000, time.Minute))},
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
		"{rate: 20%, min: 50/s, exit: 50%, hold: 0s}": {{Kind: hotparam.Share, Factor: hotparam.Percent(20), Rate: per(50, time.Second), Exit: hotparam.Percent(50), CoolDown: cool}},
		"8x":                          {jump},
		"8X":                          {jump},
		"{rate: 8x}":                  {jump},
		"{jump: 8x/1h}":               {with(jump, per(10, time.Hour), 80)},
		"{jump: 8x, over: day}":       {func() hotparam.Threshold { t := jump; t.Over = hotparam.OverDay; return t }()},
		"{jump: 1.5x, cool_down: 3s}": {{Kind: hotparam.Jump, Factor: hotparam.Percent(150), Rate: per(10, time.Second), Exit: exit, Hold: hold, CoolDown: 3 * time.Second}},
		"{top: 10}":                   {top},
		"{top: 10, min: 20/5s}":       {with(top, per(20, 5*time.Second), 80)},
		"[200/s, 20%, {top: 10}, 8x]": {hotparam.NewThreshold(per(200, time.Second)), share, top, jump},
		"\n      - rate: 200/s\n        exit: 100\n      - 20%": {with(hotparam.NewThreshold(per(200, time.Second)), per(200, time.Second), 50), share},
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
	if r.Count != hotparam.Bytes || !reflect.DeepEqual(got, want) {
		t.Errorf("bytes: %v %v, want %v", r.Count, got, want)
	}
	r = ruleOf(t, "count: ms", "hot: {rate: 30s/10s, exit: 20000}", "limit: {rate: 500ms/s, burst: 2s}")
	if h := r.Hot[0]; r.Count != hotparam.Millis || h.Rate != per(30_000, 10*time.Second) || h.ExitCount(h.Rate.N) != 20_000 || r.Limit.Rate != per(500, time.Second) || r.Limit.Burst != 2000 {
		t.Errorf("ms: %+v, limit %+v", r, r.Limit)
	}
	for word, unit := range map[string]hotparam.Unit{"units": hotparam.Units, "requests": hotparam.Requests, "bytes": hotparam.Bytes, "ms": hotparam.Millis} {
		if r := ruleOf(t, "count: "+word, "limit: 7/s"); r.Count != unit || *r.Limit != (hotparam.Limit{Quota: hotparam.Quota{Algorithm: hotparam.TokenBucket, Rate: per(7, time.Second), Burst: 7}, Mode: hotparam.ModeLimit}) {
			t.Errorf("%s: %+v, limit %+v", word, r, r.Limit)
		}
	}
}

func TestBy(t *testing.T) {
	names := []hotparam.Param{{Name: "q"}, {Source: hotparam.Path, Name: "id"}}
	for text, want := range map[string]hotparam.By{
		"all": {Kind: hotparam.ByAll}, "each": {Kind: hotparam.ByEach}, "combinations": {Kind: hotparam.ByCombinations},
		"[q, path:id]":                   {Kind: hotparam.ByNames, Names: names},
		"{combinations: [q, 'path:id']}": {Kind: hotparam.ByCombinations, Names: names},
		"[combinations]":                 {Kind: hotparam.ByNames, Names: []hotparam.Param{{Name: "combinations"}}},
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
	values := func(pairs ...string) []hotparam.QueryMatch {
		var v []hotparam.QueryMatch
		for i := 0; i < len(pairs); i += 2 {
			v = append(v, hotparam.QueryMatch{Name: pairs[i], Value: pairs[i+1]})
		}
		return v
	}
	want := []hotparam.Exception{
		{Values: values("q", "phone*"), Action: hotparam.Allow},
		{Values: values("q", "a*", "page", "1"), Action: hotparam.Block}, {Values: values("q", "a*", "page", "2"), Action: hotparam.Block},
		{Values: values("q", "b", "page", "1"), Action: hotparam.Block}, {Values: values("q", "b", "page", "2"), Action: hotparam.Block},
		{Values: values("q", "tv"), Rate: per(1000, time.Minute), Limit: &hotparam.Limit{Quota: hotparam.Quota{Algorithm: hotparam.TokenBucket, Rate: per(500, time.Second), Burst: 7}, Mode: hotparam.ModeShadow}},
		{Values: values("q", ""), Limit: &hotparam.Limit{Quota: hotparam.Quota{Algorithm: hotparam.TokenBucket, Rate: per(5, time.Second), Burst: 5}, Mode: hotparam.ModeLimit}},
		{Values: values("path:id", "brand-*"), Action: hotparam.Allow}, {Values: values("path:id", "true"), Action: hotparam.Allow},
		{Values: values("q", "x", "page", "1"), Action: hotparam.Block}, {Values: values("query:a:b", "z"), Action: hotparam.Block},
	}
	if !reflect.DeepEqual(r.Except, want) {
		t.Errorf("got\n%+v\nwant\n%+v", r.Except, want)
	}
	// A rule may do nothing but block, or limit some values alone.
	ruleOf(t, "by: [q]", "block: {q: x}")
	ruleOf(t, "by: [q]", "except: [{values: {q: x}, limit: 5/s}]")
	ruleOf(t, "by: each", "limit: 5/s", "allow: [{q: x}, {page: 1}]")
}

// What an exception names is found in the keys that a rule makes.
func TestExceptionsMatchKeys(t *testing.T) {
	r := ruleOf(t, "hot: 1/s", "by: [q, path:id, 'query:a:b', query:id]", `allow: [{"path:id": "7*"}, {"query:a:b": x}, {"query:id": z}]`)
	for _, test := range []struct {
		param hotparam.Param
		want  bool
	}{
		{hotparam.Param{Source: hotparam.Path, Name: "id", Value: "77"}, true},
		{hotparam.Param{Name: "id", Value: "77"}, false},
		{hotparam.Param{Name: "id", Value: "z"}, true},
		{hotparam.Param{Name: "a:b", Value: "x"}, true},
		{hotparam.Param{Name: "q", Value: "x"}, false},
	} {
		text := hotparam.Text("GET /u/{id}", test.param)
		if got := r.Exception(text) != nil; got != test.want {
			t.Errorf("%s: %v, want %v", text, got, test.want)
		}
	}
	if strings.Contains(r.Except[2].Values[0].Name, ":") {
		t.Errorf("%+v", r.Except[2])
	}
}
