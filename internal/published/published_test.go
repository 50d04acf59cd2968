package published

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func hotPhone() Hot {
	return Hot{
		Key:   rules.Key{Rule: "search-terms", Text: "GET /search?b=2&q=phone"},
		Low:   212,
		High:  230,
		Rate:  212.5,
		Ratio: 1.06,
		Since: time.UnixMilli(1732172445123),
		Until: time.UnixMilli(1732172460123),
		Limit: rules.Rate{N: 50, Per: time.Second},
		Burst: 100,
		Mode:  rules.ModeLimit,
		Owner: "statsd",
		Cause: Cause{Rate: rules.Rate{N: 200, Per: time.Second}},
	}
}

func topPhone() *Attribution {
	return &Attribution{
		Routes:    []Origin{{Name: "GET /search", Count: 180, Over: 3}, {Name: "GET /browse", Count: 32}},
		Instances: []Origin{{Name: "api-1", Count: 212}},
		Explains:  4,
	}
}

const causePhone = `"kind":"rate","threshold":"200/s","min":200,"window_ms":1000,"unit":"requests"`

const infoTop = `{"low":212,"high":230,"since":1732172445123,"until":1732172460123,"limit":"50/s","burst":100,"mode":"limit","owner":"statsd","ratio":1.06,` + causePhone +
	`,"top":{"routes":[{"name":"GET /search","count":180,"over":3},{"name":"GET /browse","count":32}],"instances":[{"name":"api-1","count":212}],"explains":4}}`

const infoPhone = `{"low":212,"high":230,"since":1732172445123,"until":1732172460123,"limit":"50/s","burst":100,"mode":"limit","owner":"statsd","ratio":1.06,` + causePhone + `}`

func TestHotInfoGolden(t *testing.T) {
	watched := hotPhone()
	watched.High, watched.Limit, watched.Burst, watched.Mode = Unknown, rules.Rate{}, 0, rules.ModeWatch
	watched.Cause = Cause{Kind: rules.Share, Factor: rules.NewFraction(1, 8), Rate: rules.Rate{N: 10e6, Per: time.Minute}, Unit: rules.Bytes}
	before := hotPhone()
	before.Cause = Cause{}
	sampled := hotPhone()
	sampled.High, sampled.Estimated = Unknown, true
	template := hotPhone()
	template.Until = time.Time{}
	attributed := hotPhone()
	attributed.Top = topPhone()
	usual, spared := hotPhone(), hotPhone()
	usual.Usual, spared.Usual, spared.Spared = true, true, true
	several := hotPhone()
	several.Also = "share/10s,rate/1h0m0s"
	for name, tt := range map[string]struct {
		hot  Hot
		want string
	}{
		"limited":  {hotPhone(), infoPhone},
		"several":  {several, strings.TrimSuffix(infoPhone, "}") + `,"also":"share/10s,rate/1h0m0s"}`},
		"watched":  {watched, `{"low":212,"high":null,"since":1732172445123,"until":1732172460123,"limit":null,"burst":0,"mode":"watch","owner":"statsd","ratio":1.06,"kind":"share","threshold":"12.5%/1m","min":10000000,"window_ms":60000,"unit":"bytes"}`},
		"before":   {before, strings.Replace(infoPhone, ","+causePhone, "", 1)},
		"sampled":  {sampled, strings.Replace(strings.Replace(infoPhone, "230", "null", 1), "}", `,"estimated":true}`, 1)},
		"top":      {attributed, infoTop},
		"usual":    {usual, strings.TrimSuffix(infoPhone, "}") + `,"usual":true}`},
		"spared":   {spared, strings.TrimSuffix(infoPhone, "}") + `,"usual":true,"spared":true}`},
		"template": {template, strings.Replace(infoPhone, "1732172460123", "\x03", 1)},
	} {
		if got := string(EncodeInfo(tt.hot)); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tt.want)
		}
	}
}

func TestHotChangeGolden(t *testing.T) {
	change := Push{
		Version: Version{Run: "6f1c0a2b9d3e4f58", N: 42},
		At:      time.UnixMilli(1732172445123),
		Beat:    5 * time.Second,
		Hot:     []PushEntry{{Hot: hotPhone(), TTL: 15 * time.Second}},
		Cool:    []rules.Key{{Rule: "search-terms", Text: "GET /search?q=tablet"}, {Rule: "r", Text: `"`}},
	}
	const want = `{"version":"6f1c0a2b9d3e4f58:42","at":1732172445123,"beat_ms":5000,"hot":[{"rule":"search-terms","key":"GET /search?b=2&q=phone","rate":212.5,"ttl_ms":15000,"info":` +
		infoPhone + `}],"cool":["search-terms GET /search?q=tablet","r \""]}`
	if got := string(EncodePush(&change)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	template := Push{Beat: 5 * time.Second, Hot: []PushEntry{{Hot: hotPhone(), TTL: time.Second}}}
	template.Hot[0].Until = time.Time{}
	got := string(EncodePush(&template))
	for _, hole := range []string{"\"version\":\"\x01\"", "\"at\":\x02,", "\"until\":\x03,", "\"cool\":[\x04]"} {
		if strings.Count(got, hole) != 1 {
			t.Errorf("template has not one %q: %q", hole, got)
		}
	}
}

func TestHotVersion(t *testing.T) {
	for _, s := range []string{"a:1", "6f1c0a2b9d3e4f58:42", "Z9:9007199254740991"} {
		v, err := ParseVersion(s)
		if err != nil || v.String() != s {
			t.Errorf("ParseVersion(%q) = %v, %v", s, v, err)
		}
	}
	for _, s := range []string{"", ":", "a:", ":1", "a:0", "a:01", "a:+1", "a:-1", "a:1:2", "a b:1", "a:9007199254740992", "é:1", strings.Repeat("a", 65) + ":1"} {
		if v, err := ParseVersion(s); err == nil {
			t.Errorf("ParseVersion(%q) = %v, want an error", s, v)
		}
	}
}

func TestParseHotInfoRefuses(t *testing.T) {
	for name, edit := range map[string][2]string{
		"no low":              {`"low":212`, `"lo":212`},
		"negative low":        {`"low":212`, `"low":-1`},
		"fraction":            {`"low":212`, `"low":1.5`},
		"high below low":      {`"high":230`, `"high":211`},
		"no until":            {`"until"`, `"unti"`},
		"until out of range":  {`1732172460123`, `9223372036854775807`},
		"limit of no time":    {`"50/s"`, `"50"`},
		"limit and no burst":  {`"burst":100`, `"burst":0`},
		"negative ratio":      {`"ratio":1.06`, `"ratio":-1`},
		"mode unknown":        {`"limit","owner`, `"block","owner`},
		"limit in watch mode": {`"limit","owner`, `"watch","owner`},
		"no limit to hold to": {`"50/s"`, `null`},
		"origin of no count":  {`"count":212`, `"count":-1`},
		"over the count":      {`"over":3`, `"over":181`},
		"negative over":       {`"over":3`, `"over":-3`},
		"explains negative":   {`"explains":4`, `"explains":-4`},
		"name too long":       {`GET /browse`, strings.Repeat("x", 513)},
		"top is no object":    {`"routes":[`, `"routes":5,"rest":[`},
	} {
		value := strings.Replace(infoTop, edit[0], edit[1], 1)
		if value == infoTop {
			t.Fatalf("%s: nothing was edited", name)
		}
		if h, err := ParseInfo([]byte(value)); err == nil {
			t.Errorf("%s: %s was read as %+v", name, value, h)
		}
	}
}

// An entry of an earlier version has no ratio: its key reached the threshold.
func TestParseHotInfoWithoutRatio(t *testing.T) {
	h, err := ParseInfo([]byte(strings.Replace(infoPhone, `,"ratio":1.06`, "", 1)))
	if err != nil || h.Ratio != 1 {
		t.Errorf("ratio %v, %v; want 1", h.Ratio, err)
	}
}

// An entry without a cause, or with one in an unknown form, is still read.
func TestParseHotInfoWithoutCause(t *testing.T) {
	for _, edit := range [][2]string{
		{"," + causePhone, ""}, {`"rate"`, `"slope"`}, {`"requests"`, `"joules"`}, {`"min":200`, `"min":0`}, {`"window_ms":1000`, `"window_ms":3600001`},
		{`"kind":"rate"`, `"kind":"share"`}, {`"kind":"rate","threshold":"200/s"`, `"kind":"top","threshold":"top 1001/s"`}, {`"kind":"rate","threshold":"200/s"`, `"kind":"jump","threshold":"x/s"`},
	} {
		value := strings.Replace(infoPhone, edit[0], edit[1], 1)
		h, err := ParseInfo([]byte(value))
		if kept := edit[0] == `"kind":"rate"`; err != nil || value == infoPhone || h.Low != 212 || h.Cause.IsZero() == kept {
			t.Errorf("%s: %+v, %v", value, h, err)
		}
	}
}

func TestVersionAlone(t *testing.T) {
	c, err := ParsePush([]byte(`{"version":"a:7"}`))
	if err != nil || !c.VersionAlone() || c.Version.N != 7 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A publisher shortens an entry to the bounds of readers.
func TestTopIsBounded(t *testing.T) {
	h := hotPhone()
	h.Top = &Attribution{Explains: -1, Callers: []Origin{
		{Name: strings.Repeat("\xff", 600), Count: 9},
		{Name: strings.Repeat("x", 511) + "é", Count: 8, Over: 9},
		{Name: "é\n\"", Count: -1, Over: -1}, {}, {}, {Name: "the sixth"},
	}}
	got, err := ParseInfo(EncodeInfo(h))
	if err != nil {
		t.Fatal(err)
	}
	want := &Attribution{Callers: []Origin{
		{Name: "\uFFFD", Count: 9}, {Name: strings.Repeat("x", 511), Count: 8, Over: 8}, {Name: "é\n\""}, {}, {},
	}}
	if !reflect.DeepEqual(got.Top, want) {
		t.Errorf("\n got %+v\nwant %+v", got.Top, want)
	}
	many := strings.Replace(infoTop, `"instances":[`, `"instances":[`+strings.Repeat(`{"name":"a","count":1},`, 9), 1)
	if got, err := ParseInfo([]byte(many)); err != nil || len(got.Top.Instances) != MaxOrigins {
		t.Errorf("a writer of ten instances: %+v, %v; want the first %d", got.Top, err, MaxOrigins)
	}
}

func TestBeat(t *testing.T) {
	for value, want := range map[string]Beat{
		`{"instances":20,"suspects":"da39"}`:           {20, "da39"},
		`{"instances":0,"suspects":""}`:                {},
		`{"instances":100000,"suspects":"","later":1}`: {Instances: 100_000},
	} {
		if got, err := ParseBeat([]byte(value)); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", value, got, err, want)
		}
	}
	for _, value := range []string{"", "statsd", `{"instances":-1}`, `{"instances":100001}`, `{"instances":1.5}`, `{"suspects":"` + strings.Repeat("a", 65) + `"}`} {
		if got, err := ParseBeat([]byte(value)); err == nil {
			t.Errorf("%q was read as %+v", value, got)
		}
	}
}

func TestFleetChange(t *testing.T) {
	const whole = `{"version":"a:7","fleet":{"instances":20,"was":"da39","suspects":"3f78","new":["r GET /?q=1"],"over":["r GET /?q=2"]}}`
	c, err := ParsePush([]byte(whole))
	want := &FleetChange{
		Instances: 20, Was: "da39", Suspects: "3f78", Whole: true,
		New: []rules.Key{{Rule: "r", Text: "GET /?q=1"}}, Over: []rules.Key{{Rule: "r", Text: "GET /?q=2"}},
	}
	if err != nil || !c.VersionAlone() || c.Version.N != 7 || !reflect.DeepEqual(c.Fleet, want) {
		t.Errorf("got %+v, %v, want %+v", c.Fleet, err, want)
	}
	c, err = ParsePush([]byte(`{"version":"a:7","fleet":{"instances":20,"new":["r k"]}}`))
	if err != nil || c.Fleet.Whole || len(c.Fleet.New) != 1 {
		t.Errorf("got %+v, %v, want a part", c.Fleet, err)
	}
	for name, edit := range map[string][2]string{
		"instances":      {`20`, `-20`},
		"digest":         {`da39`, strings.Repeat("d", 65)},
		"no rule":        {`"r GET /?q=1"`, `"GET"`},
		"no member":      {`"r GET /?q=2"`, `2`},
		"a thousand one": {`"r GET /?q=1"`, strings.Repeat(`"r k",`, 1000) + `"r k"`},
	} {
		if got, err := ParsePush([]byte(strings.Replace(whole, edit[0], edit[1], 1))); err == nil {
			t.Errorf("%s: read as %+v", name, got.Fleet)
		}
	}
}

func genTop(t *rapid.T) *Attribution {
	if rapid.Bool().Draw(t, "no top") {
		return nil
	}
	origins := rapid.Custom(func(t *rapid.T) Origin {
		count := rapid.Int64Min(0).Draw(t, "count")
		return Origin{Name: rapid.StringN(0, 128, maxOrigin).Draw(t, "name"), Count: count, Over: rapid.Int64Range(0, count).Draw(t, "over")}
	})
	list := func(name string) []Origin {
		if o := rapid.SliceOfN(origins, 0, MaxOrigins).Draw(t, name); len(o) > 0 {
			return o
		}
		return nil
	}
	return &Attribution{Routes: list("routes"), Instances: list("instances"), Callers: list("callers"), Explains: rapid.IntMin(0).Draw(t, "explains")}
}

func genHot(t *rapid.T) Hot {
	h := Hot{
		Key: rules.Key{
			Rule: rapid.StringMatching(`[a-z0-9_-]{1,12}`).Draw(t, "rule"),
			Text: rapid.String().Draw(t, "text"),
		},
		Low:   rapid.Int64Range(0, 1<<40).Draw(t, "low"),
		High:  Unknown,
		Rate:  rapid.Float64Range(0, 1e9).Draw(t, "rate"),
		Since: time.UnixMilli(rapid.Int64Range(0, maxMillis).Draw(t, "since")),
		Until: time.UnixMilli(rapid.Int64Range(0, maxMillis).Draw(t, "until")),
		Mode:  rapid.SampledFrom([]rules.Mode{rules.ModeLimit, rules.ModeShadow, rules.ModeWatch}).Draw(t, "mode"),
		Owner: rapid.String().Draw(t, "owner"),
		Top:   genTop(t),
		Hold:  genHold(t),

		Estimated: rapid.Bool().Draw(t, "estimated"),
	}
	if h.Usual = rapid.Bool().Draw(t, "usual"); h.Usual {
		h.Spared = rapid.Bool().Draw(t, "spared")
	}
	if rapid.Bool().Draw(t, "known") {
		h.High = h.Low + rapid.Int64Range(0, 1<<20).Draw(t, "hidden")
	}
	if rapid.Bool().Draw(t, "caused") {
		h.Cause = Cause{
			Kind: rules.ThresholdKind(rapid.IntRange(int(rules.FixedRate), int(rules.Cost)).Draw(t, "kind")),
			Rate: rules.Rate{N: rapid.Int64Range(1, 1<<50).Draw(t, "min"), Per: time.Duration(rapid.Int64Range(1000, 3_600_000).Draw(t, "window")) * time.Millisecond},
			Unit: rules.Unit(rapid.IntRange(int(rules.Requests), int(rules.Units)).Draw(t, "unit")),
		}
		switch h.Cause.Kind {
		case rules.Jump:
			h.Cause.Over = rules.Over(rapid.IntRange(int(rules.OverRecent), int(rules.OverDay)).Draw(t, "over"))
			fallthrough
		case rules.Share:
			h.Cause.Factor = rules.NewFraction(rapid.Int64Range(1, 1e9).Draw(t, "factor"), 1e7)
		case rules.Top:
			h.Cause.Top = rapid.IntRange(1, rules.MaxTop).Draw(t, "top")
		}
	}
	if h.Mode != rules.ModeWatch {
		h.Limit = rules.Rate{N: rapid.Int64Range(1, 10_000).Draw(t, "n"), Per: rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 1500 * time.Millisecond}).Draw(t, "per")}
		h.Burst = rapid.Int64Range(1, 1<<30).Draw(t, "burst")
	}
	return h
}

// A change is written as JSON, and is read back unchanged.
func TestHotChangeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Push{
			Version: Version{Run: rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "run"), N: rapid.Uint64Range(1, 1<<52).Draw(t, "n")},
			At:      time.UnixMilli(rapid.Int64Range(1, maxMillis).Draw(t, "at")),
			Beat:    time.Duration(rapid.Int64Range(0, 60_000).Draw(t, "beat")) * time.Millisecond,
		}
		for range rapid.IntRange(0, 3).Draw(t, "hot") {
			ttl := time.Duration(rapid.Int64Range(0, 60_000).Draw(t, "ttl")) * time.Millisecond
			c.Hot = append(c.Hot, PushEntry{Hot: genHot(t), TTL: ttl})
		}
		for range rapid.IntRange(0, 3).Draw(t, "cool") {
			c.Cool = append(c.Cool, genHot(t).Key)
		}
		data := EncodePush(&c)
		if !json.Valid(data) {
			t.Fatalf("not JSON: %q", data)
		}
		got, err := ParsePush(data)
		if err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if !reflect.DeepEqual(got, c) {
			t.Fatalf("\n got %+v\nwant %+v\nfrom %s", got, c, data)
		}
	})
}

func FuzzParseHotInfo(f *testing.F) {
	f.Add([]byte(infoPhone))
	f.Add([]byte(infoTop))
	f.Add([]byte(strings.TrimSuffix(infoPhone, "}") + infoHold))
	f.Add([]byte(`{"low":0,"high":null,"since":0,"until":0,"limit":null,"mode":"watch"}`))
	f.Add([]byte(`{"low":1e3}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseInfo(data)
		if err != nil {
			return
		}
		again, err := ParseInfo(EncodeInfo(h))
		if err != nil || !reflect.DeepEqual(again, h) {
			t.Fatalf("%q: read %+v, then %+v, %v", data, h, again, err)
		}
	})
}

func FuzzParseHotChange(f *testing.F) {
	f.Add([]byte(`{"version":"a:7"}`))
	f.Add([]byte(`{"version":"a:7","at":1,"beat_ms":5000,"hot":[{"rule":"r","key":"k","rate":1,"ttl_ms":1,"info":` + infoTop + `}],"cool":["r k"]}`))
	f.Add([]byte(`{"version":"a:7","fleet":{"instances":20,"was":"da39","suspects":"3f78","new":["r k"],"over":["r l"]}}`))
	f.Add([]byte(`{"version":"a:7","at":1,"cool":["k"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParsePush(data)
		if f := c.Fleet; f != nil && (!c.VersionAlone() || len(f.New) > MaxSuspects || len(f.Over) > MaxSuspects || f.Instances < 0) {
			t.Fatalf("%q: read %+v", data, f)
		}
		if err != nil || c.VersionAlone() {
			return
		}
		again, err := ParsePush(EncodePush(&c))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%q: read %+v, then %+v, %v", data, c, again, err)
		}
	})
}

func FuzzParseHotVersion(f *testing.F) {
	f.Add("6f1c0a2b9d3e4f58:42")
	f.Add("a:01")
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseVersion(s); err == nil && v.String() != s {
			t.Fatalf("%q was read as %q", s, v)
		}
	})
}
