package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
)

func hotPhone() hotparam.Hot {
	return hotparam.Hot{
		Key:   hotparam.Key{Rule: "search-terms", Text: "GET /search?b=2&q=phone"},
		Low:   212,
		High:  230,
		Rate:  212.5,
		Since: time.UnixMilli(1732172445123),
		Until: time.UnixMilli(1732172460123),
		Limit: hotparam.Rate{N: 50, Per: time.Second},
		Burst: 100,
		Mode:  hotparam.ModeLimit,
		Owner: "statsd",
	}
}

const infoPhone = `{"low":212,"high":230,"since":1732172445123,"until":1732172460123,"limit":"50/s","burst":100,"mode":"limit","owner":"statsd"}`

func TestHotInfoGolden(t *testing.T) {
	watched := hotPhone()
	watched.High, watched.Limit, watched.Burst, watched.Mode = hotparam.Unknown, hotparam.Rate{}, 0, hotparam.ModeWatch
	template := hotPhone()
	template.Until = time.Time{}
	for name, tt := range map[string]struct {
		hot  hotparam.Hot
		want string
	}{
		"limited":  {hotPhone(), infoPhone},
		"watched":  {watched, `{"low":212,"high":null,"since":1732172445123,"until":1732172460123,"limit":null,"burst":0,"mode":"watch","owner":"statsd"}`},
		"template": {template, strings.Replace(infoPhone, "1732172460123", "\x03", 1)},
	} {
		if got := string(AppendHotInfo(nil, tt.hot)); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tt.want)
		}
	}
}

func TestHotChangeGolden(t *testing.T) {
	change := HotChange{
		Version: HotVersion{Run: "6f1c0a2b9d3e4f58", N: 42},
		At:      time.UnixMilli(1732172445123),
		Beat:    5 * time.Second,
		Hot:     []HotEntry{{Hot: hotPhone(), TTL: 15 * time.Second}},
		Cool:    []hotparam.Key{{Rule: "search-terms", Text: "GET /search?q=tablet"}, {Rule: "r", Text: `"`}},
	}
	const want = `{"version":"6f1c0a2b9d3e4f58:42","at":1732172445123,"beat_ms":5000,"hot":[{"rule":"search-terms","key":"GET /search?b=2&q=phone","rate":212.5,"ttl_ms":15000,"info":` +
		infoPhone + `}],"cool":["search-terms GET /search?q=tablet","r \""]}`
	if got := string(AppendHotChange(nil, &change)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	template := HotChange{Beat: 5 * time.Second, Hot: []HotEntry{{Hot: hotPhone(), TTL: time.Second}}}
	template.Hot[0].Until = time.Time{}
	got := string(AppendHotChange(nil, &template))
	for _, hole := range []string{"\"version\":\"\x01\"", "\"at\":\x02,", "\"until\":\x03,", "\"cool\":[\x04]"} {
		if strings.Count(got, hole) != 1 {
			t.Errorf("template has not one %q: %q", hole, got)
		}
	}
}

func TestHotVersion(t *testing.T) {
	for _, s := range []string{"a:1", "6f1c0a2b9d3e4f58:42", "Z9:9007199254740991"} {
		v, err := ParseHotVersion(s)
		if err != nil || v.String() != s {
			t.Errorf("ParseHotVersion(%q) = %v, %v", s, v, err)
		}
	}
	for _, s := range []string{"", ":", "a:", ":1", "a:0", "a:01", "a:+1", "a:-1", "a:1:2", "a b:1", "a:9007199254740992", "é:1", strings.Repeat("a", 65) + ":1"} {
		if v, err := ParseHotVersion(s); err == nil {
			t.Errorf("ParseHotVersion(%q) = %v, want an error", s, v)
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
		"mode unknown":        {`"limit","owner`, `"block","owner`},
		"limit in watch mode": {`"limit","owner`, `"watch","owner`},
		"no limit to hold to": {`"50/s"`, `null`},
	} {
		value := strings.Replace(infoPhone, edit[0], edit[1], 1)
		if value == infoPhone {
			t.Fatalf("%s: nothing was edited", name)
		}
		if h, err := ParseHotInfo([]byte(value)); err == nil {
			t.Errorf("%s: %s was read as %+v", name, value, h)
		}
	}
}

func TestVersionAlone(t *testing.T) {
	c, err := ParseHotChange([]byte(`{"version":"a:7"}`))
	if err != nil || !c.VersionAlone() || c.Version.N != 7 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func genHot(t *rapid.T) hotparam.Hot {
	h := hotparam.Hot{
		Key: hotparam.Key{
			Rule: rapid.StringMatching(`[a-z0-9_-]{1,12}`).Draw(t, "rule"),
			Text: rapid.String().Draw(t, "text"),
		},
		Low:   rapid.Int64Range(0, 1<<40).Draw(t, "low"),
		High:  hotparam.Unknown,
		Rate:  rapid.Float64Range(0, 1e9).Draw(t, "rate"),
		Since: time.UnixMilli(rapid.Int64Range(0, maxMillis).Draw(t, "since")),
		Until: time.UnixMilli(rapid.Int64Range(0, maxMillis).Draw(t, "until")),
		Mode:  rapid.SampledFrom([]hotparam.Mode{hotparam.ModeLimit, hotparam.ModeShadow, hotparam.ModeWatch}).Draw(t, "mode"),
		Owner: rapid.String().Draw(t, "owner"),
	}
	if rapid.Bool().Draw(t, "known") {
		h.High = h.Low + rapid.Int64Range(0, 1<<20).Draw(t, "hidden")
	}
	if h.Mode != hotparam.ModeWatch {
		h.Limit = hotparam.Rate{N: rapid.Int64Range(1, 10_000).Draw(t, "n"), Per: rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 1500 * time.Millisecond}).Draw(t, "per")}
		h.Burst = rapid.Int64Range(1, 1<<30).Draw(t, "burst")
	}
	return h
}

// What is written is JSON, and is read back as it was.
func TestHotChangeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := HotChange{
			Version: HotVersion{Run: rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "run"), N: rapid.Uint64Range(1, 1<<52).Draw(t, "n")},
			At:      time.UnixMilli(rapid.Int64Range(1, maxMillis).Draw(t, "at")),
			Beat:    time.Duration(rapid.Int64Range(0, 60_000).Draw(t, "beat")) * time.Millisecond,
		}
		for range rapid.IntRange(0, 3).Draw(t, "hot") {
			ttl := time.Duration(rapid.Int64Range(0, 60_000).Draw(t, "ttl")) * time.Millisecond
			c.Hot = append(c.Hot, HotEntry{Hot: genHot(t), TTL: ttl})
		}
		for range rapid.IntRange(0, 3).Draw(t, "cool") {
			c.Cool = append(c.Cool, genHot(t).Key)
		}
		data := AppendHotChange(nil, &c)
		if !json.Valid(data) {
			t.Fatalf("not JSON: %q", data)
		}
		got, err := ParseHotChange(data)
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
	f.Add([]byte(`{"low":0,"high":null,"since":0,"until":0,"limit":null,"mode":"watch"}`))
	f.Add([]byte(`{"low":1e3}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseHotInfo(data)
		if err != nil {
			return
		}
		again, err := ParseHotInfo(AppendHotInfo(nil, h))
		if err != nil || again != h {
			t.Fatalf("%q: read %+v, then %+v, %v", data, h, again, err)
		}
	})
}

func FuzzParseHotChange(f *testing.F) {
	f.Add([]byte(`{"version":"a:7"}`))
	f.Add([]byte(`{"version":"a:7","at":1,"beat_ms":5000,"hot":[{"rule":"r","key":"k","rate":1,"ttl_ms":1,"info":` + infoPhone + `}],"cool":["r k"]}`))
	f.Add([]byte(`{"version":"a:7","at":1,"cool":["k"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseHotChange(data)
		if err != nil || c.VersionAlone() {
			return
		}
		again, err := ParseHotChange(AppendHotChange(nil, &c))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%q: read %+v, then %+v, %v", data, c, again, err)
		}
	})
}

func FuzzParseHotVersion(f *testing.F) {
	f.Add("6f1c0a2b9d3e4f58:42")
	f.Add("a:01")
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseHotVersion(s); err == nil && v.String() != s {
			t.Fatalf("%q was read as %q", s, v)
		}
	})
}
