package middleware

import (
	"net/http"
	"slices"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// rpcCall is a request of an RPC framework: its metadata, its peer and its message.
type rpcCall struct {
	header http.Header
	peer   string
	fields map[string][]string

	made int
	read []string
}

func (c *rpcCall) request() Request {
	return Request{
		Pattern: "shop.Search/Find",
		MakeHTTP: func() *http.Request {
			c.made++
			return &http.Request{Header: c.header, RemoteAddr: c.peer}
		},
		Field: func(name string, values []string) []string {
			c.read = append(c.read, name)
			return append(values, c.fields[name]...)
		},
	}
}

// An RPC is one request. Rules may combine its fields, its metadata and its peer, and its keys
// have the resource's name. A field that no rule names is not read, and none is read twice.
func TestRPC(t *testing.T) {
	call := &rpcCall{
		header: http.Header{"X-Plan": {"free"}}, peer: "192.0.2.7:80",
		fields: map[string][]string{"user.id": {"7", "8"}, "page": {"1"}, "other": {"x"}},
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		hotRule(t, "all", "shop.Search/Find", byNames("rpc:user.id", "header:x-plan", "addr:ip"), 0, 0),
		hotRule(t, "again", "*", byNames("rpc:user.id", "header:x-plan"), 0, 0),
		hotRule(t, "unset", "*", byNames("rpc:tenant"), 0, 0),
		hotRule(t, "path", "/shop.Search/Find", byNames("rpc:page"), 0, 0),
		hotRule(t, "else", "shop.Search/Get", byNames("rpc:other", "cookie:c"), 0, 0),
	}})
	f.Begin(call.request())
	want := []string{
		"again shop.Search/Find?rpc:user.id=7&header:x-plan=free",
		"again shop.Search/Find?rpc:user.id=8&header:x-plan=free",
		"all shop.Search/Find?addr:ip=192.0.2.7&rpc:user.id=7&header:x-plan=free",
		"all shop.Search/Find?addr:ip=192.0.2.7&rpc:user.id=8&header:x-plan=free",
	}
	got := f.keys()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("counted %q,\nwant    %q", got, want)
	}
	if call.made != 1 || !slices.Equal(call.read, []string{"user.id", "tenant"}) {
		t.Errorf("made %d times, read %q", call.made, call.read)
	}

	f = newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byNames("rpc:user.id"), 0, 0)}})
	call.made = 0
	f.Begin(call.request())
	begun := f.keys()
	f.Enter(t.Context(), "shop.Search/Find", rules.Param{Source: rules.RPC, Name: "user.id", Value: "7"}, rules.Param{Source: rules.RPC, Name: "user.id", Value: "8"})
	if entered := f.keys(); !slices.Equal(begun, entered) || len(begun) != 2 || call.made != 0 {
		t.Errorf("Begin makes the keys %q, Enter %q; a request of net/http %d times", begun, entered, call.made)
	}
	f.Begin(Request{Pattern: "shop.Search/Find"}) // no message
	f.Begin(get("GET /s", "/s", "user.id=7"))     // no RPC
	if keys := f.keys(); len(keys) != 0 {
		t.Errorf("without a message: %q", keys)
	}
}

// Fields can decide wherever other parameters can: in match, in exceptions, and as a priority.
func TestRPCFieldsEverywhere(t *testing.T) {
	param := rules.Param{Source: rules.RPC, Name: "tier"}
	rule := limitRule(t, "r", "*", byNames("rpc:user.id"), 1, 4)
	rule.Match.Query = []rules.QueryMatch{{Name: "rpc:mode", Value: "fast*"}}
	rule.Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "rpc:user.id", Value: "evil"}}, Action: rules.Block}}
	rule.Limit.Priority = &rules.Priority{Source: param.Source, Name: param.Name, First: []string{"gold"}}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	decide := func(fields map[string][]string) rules.Decision {
		d, _ := f.Begin((&rpcCall{fields: fields}).request())
		return d
	}
	if d := decide(map[string][]string{"user.id": {"1"}, "mode": {"slow"}}); d.Reason != rules.ReasonNone {
		t.Errorf("what does not match: %+v", d)
	}
	if d := decide(map[string][]string{"user.id": {"evil"}, "mode": {"faster"}}); d.Reason != rules.ReasonBlocked {
		t.Errorf("what is blocked: %+v", d)
	}
	for tier, want := range map[string]int{"gold": 4, "none": 2} { // others leave half of the burst
		passed := 0
		for range 6 {
			if decide(map[string][]string{"user.id": {tier}, "mode": {"fast"}, "tier": {tier}}).Allowed {
				passed++
			}
		}
		if passed != want {
			t.Errorf("%s: %d passed, want %d", tier, passed, want)
		}
	}
}
