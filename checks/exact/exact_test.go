package exact

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		by, target string
		want       []string
	}{
		{"all", "/s?q=1&b=2", []string{"GET /s?b=2&q=1"}},
		{"all", "/%7eu/%2f?q=a+b%2B%zz&q=%41&=x&&k", []string{"GET /~u/%2F?=x&k=&q=A&q=a%20b%2B%25zz"}},
		{"all", "/s|é?api-key=1&user[token]=2", []string{"GET /s%7C%C3%A9"}},
		{"each", "/s?q=1&b=2&q=1&Session=3", []string{"GET /s?b=2", "GET /s?q=1"}},
		{"each", "/s", nil},
		{"q", "/s?q=1&b=2&q=0&q=1", []string{"GET /s?q=0", "GET /s?q=1"}},
		{"q,b", "/s?q=1&b=2&q=0&b=3", []string{"GET /s?b=2&q=0", "GET /s?b=3&q=0", "GET /s?b=2&q=1", "GET /s?b=3&q=1"}},
		{"q", "/s?q=9&q=8&q=7&q=6&q=5&q=4&q=3&q=2", []string{"GET /s?q=2", "GET /s?q=3", "GET /s?q=4", "GET /s?q=5", "GET /s?q=6", "GET /s?q=7", "GET /s?q=8", "GET /s?q=9"}},
		{"b,q", "/s?q=1&q=2&q=3&b=1&b=2&b=3", []string{"GET /s?b=1&q=1", "GET /s?b=1&q=2", "GET /s?b=1&q=3", "GET /s?b=2&q=1", "GET /s?b=2&q=2", "GET /s?b=2&q=3", "GET /s?b=3&q=1", "GET /s?b=3&q=2", "GET /s?~more"}},
		{"each", "/s?a=1&a=2&a=3&a=4&a=5&a=6&a=7&a=8&q=1", []string{"GET /s?a=1", "GET /s?a=2", "GET /s?a=3", "GET /s?a=4", "GET /s?a=5", "GET /s?a=6", "GET /s?a=7", "GET /s?q=1", "GET /s?~more"}},
		{"q,b", "/s?b=2", []string{"GET /s?b=2"}},
		{"q", "/s?Q=1", nil},
	} {
		if got := Keys(c.by, "GET", c.target); !slices.Equal(got, c.want) {
			t.Errorf("by %s of %s: %q, want %q", c.by, c.target, got, c.want)
		}
	}
	if got := Keys("all", "GET", "/"+strings.Repeat("a", 2000))[0]; len(got) != maxText {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := Keys("all", "GET", "/?q="+strings.Repeat("%20", 700))[0]; strings.Contains(got, "%~") || strings.Contains(got, "%2~") {
		t.Errorf("cut through an escape: %s", got)
	}
}

// The two ways to form a key agree, though they share no code.
func TestKeysAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		query := rapid.StringMatching(`([qb%+&=.a-z \x80-\xff]|%[0-9A-Fa-f]{2}){0,40}`).Draw(t, "query")
		got := Keys("all", "GET", "/s?"+query)
		var params keytext.Params
		params.AddQuery(query)
		params.Sort()
		want := "GET /s"
		if text, n := params.AppendAll([]byte("?"), &rules.Secrets{}); n > 0 {
			want += string(text)
		}
		if got[0] != want {
			t.Fatalf("%q, want %q", got[0], want)
		}
	})
}

func TestSecretsAgree(t *testing.T) {
	pieces := rapid.OneOf(rapid.SampledFrom(strings.Split("pass,word,password,Secret,secrets,api,key,KEY,private,Token,session,pos,ob,id,Id,ID,sess,signature,code,auth,otp,credential,type,hint,1,23,_,-, ,:,[,],.,é,A,a,XML", ",")),
		rapid.StringN(0, 3, 6))
	var secrets rules.Secrets
	hidden := 0
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(pieces, 1, 6).Draw(t, "pieces"), "")
		got := secrets.Hides(name)
		if got {
			hidden++
		}
		if want := isSecret(name); got != want {
			t.Fatalf("%q is hidden: %v", name, got)
		}
	})
	if hidden == 0 && !testing.Short() {
		t.Error("nothing was hidden")
	}
}

func count(th ThresholdSpec, key string, at ...time.Duration) LogResult {
	c := NewCounter(RuleSpec{Hot: []ThresholdSpec{th}})
	for _, d := range at {
		c.Tick(int64(d))
		c.Add(int64(d), key, 1)
	}
	return c.Result()
}

const ms = time.Millisecond

func TestFollow(t *testing.T) {
	th := ThresholdSpec{Kind: "rate", N: 3, Exit: Ratio{2, 3}, D: time.Second, Hold: 2 * time.Second}
	r := count(th, "k", 0, 500*ms, 999*ms, 4*time.Second)
	want := []HotChange{
		{Key: "k", Hot: true, At: int64(999 * ms), Low: 3, High: 3, Threshold: "3/s"},
		{Key: "k", At: int64(3000 * ms), Low: 0, High: 0, Threshold: "3/s"}, // the hold ends at 2.999 s, in a pane that ends at 3 s
	}
	if !reflect.DeepEqual(r.Events["k"], want) || !r.Must["k"] || !r.May["k"] || r.Keys != 1 {
		t.Errorf("%+v", r)
	}
	// Within a window of 1 s, but not within the ten panes that end with that of the last
	// request.
	if r := count(th, "k", 50*ms, 500*ms, 1040*ms); r.Must["k"] || !r.May["k"] {
		t.Errorf("%+v", r)
	}
	// A window is half-open.
	if r := count(th, "k", 0, 500*ms, 1000*ms); r.May["k"] {
		t.Errorf("%+v", r)
	}
	if r := count(th, "k", 0, 500*ms, 1000*ms-1); !r.May["k"] {
		t.Errorf("%+v", r)
	}
}

func TestCompareFindsWhatIsWrong(t *testing.T) {
	th := ThresholdSpec{Kind: "rate", N: 3, Exit: Ratio{2, 3}, D: time.Second, Hold: 2 * time.Second}
	r := count(th, "k", 0, 500*ms, 999*ms, 4*time.Second)
	right := r.Events["k"]
	if wrong := r.Compare(right); len(wrong) != 0 {
		t.Fatalf("%q", wrong)
	}
	change := func(f func([]HotChange) []HotChange) []HotChange { return f(slices.Clone(right)) }
	for name, events := range map[string][]HotChange{
		"missing":    nil,
		"no cool":    right[:1],
		"false":      append(slices.Clone(right), HotChange{Key: "x", Hot: true, Low: 9, High: 9}),
		"twice":      {right[0], right[0]},
		"cool first": right[1:],
		"time":       change(func(e []HotChange) []HotChange { e[0].At++; return e }),
		"low":        change(func(e []HotChange) []HotChange { e[0].Low++; return e }),
		"too low":    change(func(e []HotChange) []HotChange { e[0].Low = 2; return e }),
		"unknown":    change(func(e []HotChange) []HotChange { e[0].High = -1; return e }),
		"threshold":  change(func(e []HotChange) []HotChange { e[1].Threshold = "3/1m"; return e }),
		"high":       change(func(e []HotChange) []HotChange { e[0].High = 2; return e }),
		"one more":   append(slices.Clone(right), HotChange{Key: "k", Hot: true, Low: 9, High: 9}),
	} {
		if len(r.Compare(events)) == 0 {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
	good := Summary{Requests: 4, Keys: 1, Hot: 1, Seconds: 4}
	if wrong := r.CompareSummary(good, 4, 4); len(wrong) != 0 {
		t.Errorf("%q", wrong)
	}
	for i, f := range []func(*Summary){func(s *Summary) { s.Requests++ }, func(s *Summary) { s.Keys++ }, func(s *Summary) { s.Hot++ },
		func(s *Summary) { s.Late++ }, func(s *Summary) { s.Seconds++ }} {
		bad := good
		f(&bad)
		if len(r.CompareSummary(bad, 4, 4)) != 1 {
			t.Errorf("change %d was not seen", i)
		}
	}
}

func TestLogs(t *testing.T) {
	in := `192.0.2.1 - - [30/Jun/2017:00:00:01 +0100] "GET /s?q=\x22a\\ HTTP/1.1" 200 1 "-" "-"
nonsense
"- - - [29/Jun/2017:23:00:00 +0000] "HEAD http://example.com/t HTTP/1.0" 200 1"
{"time":"2017-06-29T23:00:00.5Z","method":"POST","uri":"/u?a=1&b"}
`
	var got []string
	err := readLog(strings.NewReader(in), func(r TraceRequest) bool {
		got = append(got, fmt.Sprint(time.Unix(0, r.At).UTC().Format("05.0"), " ", r.Method, " ", r.Target))
		return true
	})
	want := []string{"00.0 HEAD /t", "00.5 POST /u?a=1&b", `01.0 GET /s?q="a\`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %q, want %q", err, got, want)
	}
}

// Requests written as JSON lines read back unchanged.
func TestWriteJSON(t *testing.T) {
	want := []TraceRequest{{began, "GET", "/product?id=1"}, {began + 1e5, "POST", "/a?b=\"\\&c=<é>"}}
	var b bytes.Buffer
	err := WriteJSON(&b, func(yield func(TraceRequest, error) bool) {
		for _, r := range want {
			if !yield(r, nil) {
				return
			}
		}
	})
	var got []TraceRequest
	if err2 := readLog(&b, func(r TraceRequest) bool { got = append(got, r); return true }); err != nil || err2 != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, %v", err, err2, got)
	}
}

func TestMadeTraces(t *testing.T) {
	read := func(f func(r *strings.Reader, yield func(TraceRequest) bool) error, in string) (got []TraceRequest) {
		if err := f(strings.NewReader(in), func(r TraceRequest) bool { got = append(got, r); return true }); err != nil {
			t.Error(err)
		}
		return got
	}
	keys := read(func(r *strings.Reader, y func(TraceRequest) bool) error { return readKeys(r, y) }, "7\n8\n")
	if want := []TraceRequest{{began, "GET", "/product?id=7"}, {began + 100_000, "GET", "/product?id=8"}}; !slices.Equal(keys, want) {
		t.Errorf("%v", keys)
	}
	blocks := read(func(r *strings.Reader, y func(TraceRequest) bool) error { return readMooncake(r, y) }, `{"timestamp": 3000, "hash_ids": [0, 5]}`)
	if want := []TraceRequest{{began + 3e9, "GET", "/block?hash=0"}, {began + 3e9, "GET", "/block?hash=5"}}; !slices.Equal(blocks, want) {
		t.Errorf("%v", blocks)
	}
	ruet := read(func(r *strings.Reader, y func(TraceRequest) bool) error { return readRUET(r, y) },
		"10.1.1.1,[30/Nov/2017:15:00:00,GET /c.php?name=a%20b HTTP/1.1,200,\nbroken\n")
	if want := []TraceRequest{{time.Date(2017, 11, 30, 15, 0, 0, 0, time.UTC).UnixNano(), "GET", "/c.php?name=a%20b"}}; !slices.Equal(ruet, want) {
		t.Errorf("%v", ruet)
	}
	for name, made := range map[string]bool{"a.access.log.zst": false, "b.access.jsonl.zst": false, "c.log.zst": false,
		"mooncake-conversation.jsonl.zst": true, "d.keys.zst": true, "e.csv.zst": true} {
		if Made("/x/"+name) != made {
			t.Errorf("%s: made is not %v", name, made)
		}
	}
}

func TestReadOutput(t *testing.T) {
	in := `{"event":"hot","key":"GET /s?q=1","time":"2017-06-30T00:00:01.5Z","low":20,"high":null}
{"event":"cool","key":"GET /s?q=1","time":"2017-06-30T00:00:11Z","low":1,"high":2}
{"event":"summary","requests":5,"keys":3,"hot":1,"limited":0,"late":0,"seconds":1.5}
`
	events, summary, err := ReadOutput(strings.NewReader(in))
	if err != nil || len(events) != 2 || !events[0].Hot || events[0].High != -1 || events[1].Hot || events[1].High != 2 ||
		summary != (Summary{Requests: 5, Keys: 3, Hot: 1, Seconds: 1.5}) {
		t.Errorf("%v, %v, %+v", err, events, summary)
	}
	if _, _, err := ReadOutput(strings.NewReader(in[:100])); err == nil {
		t.Error("a broken line is no error")
	}
	if _, _, err := ReadOutput(strings.NewReader("")); err == nil {
		t.Error("no summary is no error")
	}
}
