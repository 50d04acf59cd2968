package middleware

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// control puts exactly these controls in force, each an action, a space and a member.
func (f *fixture) control(tb testing.TB, orders ...[2]string) {
	tb.Helper()
	var list []published.Control
	for _, o := range orders {
		key, ok := rules.ParseKey(o[1])
		if !ok {
			tb.Fatalf("%q is no member", o[1])
		}
		list = append(list, published.Control{Key: key, Action: published.ControlAction(o[0]), Until: time.Now().Add(time.Hour)})
	}
	f.SetControls(list)
}

// ofQ returns a request with a value of q.
func ofQ(q string) Request { return get("GET /s", "/s", "q="+q) }

func TestControls(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 1, 4), limitRule(t, "all", "*", rules.By{}, 1, 900)}})
	f.heat(t, "r GET /s?q=hot")
	f.control(t, [2]string{"block", "r GET /s?q=evil"}, [2]string{"allow", "r GET /s?q=hot"}, [2]string{"pin", "r GET /s?q=pinned"},
		[2]string{"block", "gone GET /s?q=1"}, [2]string{"pin", "r GET /s?q=other"})
	for range 2 {
		want(t, f.Check(ofQ("evil")), rules.Decision{Reason: rules.ReasonBlocked, Rule: "r"})
	}
	if n := tokens(f, ofQ("pinned")); n != 4 {
		t.Errorf("a pinned key gets %d, want 4", n)
	}
	if n := tokens(f, ofQ("hot")); n != 900-4 {
		t.Errorf("an allowed key gets %d, want all that another rule has left", n)
	}
	if got := f.keyCounts(); got["r GET /s?q=evil"] != 2 || got["r GET /s?q=hot"] != 897 || got["r GET /s?q=pinned"] != 5 {
		t.Errorf("counted %v: all are, whatever the control", got)
	}
	if s := f.Stats(); s.Blocked != 2 {
		t.Errorf("%+v", s)
	}
	keys := f.HotKeys()
	if i := slices.IndexFunc(keys, func(k HotKey) bool { return k.Text == "GET /s?q=pinned" }); i < 0 || !keys[i].Pinned || keys[i].Passed != 4 || keys[i].Refused != 1 {
		t.Errorf("hot keys %+v", keys)
	}
	f.control(t)
	if n := tokens(f, ofQ("evil")); n != 1000 && f.Stats().Blocked != 2 {
		t.Errorf("a key that was released gets %d", n)
	}
}

// A blocked request gets the same answer as a value that the file blocks.
func TestBlockedAnswer(t *testing.T) {
	for name, mode := range map[string]rules.Mode{"limit": rules.ModeLimit, "shadow": rules.ModeShadow, "wait": rules.ModeWait, "serve": rules.ModeServe} {
		rule := hotRule(t, "r", "GET /s", byNames("q"), 1, 1)
		rule.Limit.Mode = mode
		switch mode {
		case rules.ModeWait:
			rule.Limit.Wait = time.Second
		case rules.ModeServe:
			rule.Limit.Serve = &rules.Response{Status: http.StatusOK, Body: "in place"}
		}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		f.heat(t, "r GET /s?q=evil")
		f.control(t, [2]string{"block", "r GET /s?q=evil"})
		d := f.Check(ofQ("evil"))
		answer := d.Answer()
		var body struct {
			Title  string
			Status int
		}
		if err := json.Unmarshal(answer.Body, &body); err != nil || answer.Status != 403 || body.Title != "Forbidden" || body.Status != 403 {
			t.Errorf("%s: %d %q", name, answer.Status, answer.Body)
		}
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 1, 1)}}, WithShadow())
	f.control(t, [2]string{"block", "r GET /s?q=evil"})
	if d := f.Check(ofQ("evil")); !d.Allowed || d.Reason != rules.ReasonShadow {
		t.Errorf("a guard in shadow mode refuses nothing: %+v", d)
	}
}

// A pinned key is limited whatever the kind of its rule's limit, and by the rule's own limit, not
// by an exception's.
func TestPins(t *testing.T) {
	vip := hotRule(t, "r", "GET /s", byNames("q"), 1, 3)
	vip.Except = []rules.Exception{{Values: is("q", "vip"), Limit: limit(1, 50)}, {Values: is("q", "evil"), Action: rules.Block}, {Values: is("q", "probe"), Action: rules.Allow}}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{vip}})
	f.control(t, [2]string{"pin", "r GET /s?q=vip"}, [2]string{"pin", "r GET /s?q=evil"}, [2]string{"pin", "r GET /s?q=probe"})
	for _, q := range []string{"vip", "evil", "probe"} {
		if n := tokens(f, ofQ(q)); n != 3 {
			t.Errorf("%s gets %d, want 3", q, n)
		}
	}
	t.Run("shadow", func(t *testing.T) {
		rule := hotRule(t, "r", "GET /s", byNames("q"), 1, 1)
		rule.Limit.Mode = rules.ModeShadow
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		f.control(t, [2]string{"pin", "r GET /s?q=1"})
		if n := tokens(f, ofQ("1")); n != 1000 || f.Stats().Shadowed != 999 {
			t.Errorf("%d, %+v", n, f.Stats())
		}
	})
	t.Run("wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rule := hotRule(t, "r", "GET /s", byNames("q"), 3600, 1)
			rule.Limit.Mode, rule.Limit.Wait = rules.ModeWait, 2*time.Second
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			f.control(t, [2]string{"pin", "r GET /s?q=1"})
			start := time.Now()
			f.Check(ofQ("1"))
			if d := f.Check(ofQ("1")); !d.Allowed || time.Since(start) != time.Second {
				t.Errorf("%+v after %v", d, time.Since(start))
			}
		})
	})
	t.Run("concurrency", func(t *testing.T) {
		rule := hotRule(t, "r", "GET /s", byNames("q"), 1, 1)
		rule.Limit = &rules.Limit{Concurrency: 1, Mode: rules.ModeLimit}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		f.control(t, [2]string{"pin", "r GET /s?q=1"})
		ticket := letIn(t, f, ofQ("1"))
		if d := f.Check(ofQ("1")); d.Reason != rules.ReasonBusy {
			t.Errorf("%+v", d)
		}
		f.control(t, [2]string{"allow", "r GET /s?q=1"})
		if d := f.Check(ofQ("1")); !d.Allowed {
			t.Errorf("%+v", d)
		}
		ticket.End(Cost{})
	})
	t.Run("exact", func(t *testing.T) {
		back := newShared(t)
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{exactly(hotRule(t, "r", "GET /s", byNames("q"), 1, 2), "")}}, WithBackend(back))
		f.control(t, [2]string{"pin", "r GET /s?q=1"})
		if n := tokens(f, ofQ("1")); n != 2 {
			t.Errorf("%d, want 2", n)
		}
		calls := len(back.asked())
		f.control(t, [2]string{"block", "r GET /s?q=1"})
		f.Check(ofQ("1"))
		f.control(t, [2]string{"allow", "r GET /s?q=1"})
		if d := f.Check(ofQ("1")); !d.Allowed || len(back.asked()) > calls {
			t.Errorf("%+v, or the backend was asked", d)
		}
	})
	t.Run("share", func(t *testing.T) {
		rule := hotRule(t, "r", "GET /s", byNames("q"), 1, 12)
		rule.Limit.Scope = rules.ScopeShare
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		f.SetInstances(3)
		f.control(t, [2]string{"pin", "r GET /s?q=1"}, [2]string{"block", "r GET /s?q=2"}, [2]string{"allow", "r GET /s?q=3"})
		f.heat(t, "r GET /s?q=2", "r GET /s?q=3")
		for q, want := range map[string]int{"1": 4, "2": 0, "3": 1000, "4": 1000} {
			if n := tokens(f, ofQ(q)); n != want {
				t.Errorf("%s gets %d of this instance, want %d", q, n, want)
			}
		}
		f.SetInstances(1)
		if n := tokens(f, ofQ("1")); n != 0 {
			t.Errorf("alone it gets %d more, want none: the others may have used their parts", n)
		}
	})
	t.Run("unread bodies", func(t *testing.T) {
		broken := func() Request { r, _ := post("multipart/form-data; boundary=x", "broken"); return r }
		for action, want := range map[string]int{"pin": 2, "block": 0, "allow": 1000} {
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 2)}})
			if action == "allow" {
				f.heat(t, "r POST /s?form:~unread")
			}
			f.control(t, [2]string{action, "r POST /s?form:~unread"})
			n := 0
			for n < 1000 && f.Check(broken()).Allowed {
				n++
			}
			if n != want {
				t.Errorf("%s: %d with a body that cannot be read pass, want %d", action, n, want)
			}
			if f.keyCounts()["r POST /s?form:~unread"] == 0 {
				t.Errorf("%s: they are not counted", action)
			}
			req, _ := post(formType, "user=ann")
			if d := f.Check(req); !d.Allowed || d.Reason != rules.ReasonNone {
				t.Errorf("%s: a body that can be read: %+v", action, d)
			}
		}
	})
	t.Run("cost", func(t *testing.T) {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{costRule(t, "r", rules.Bytes, 1, 100)}})
		f.control(t, [2]string{"pin", "r GET /s?q=1"}, [2]string{"allow", "r GET /s?q=2"})
		for _, q := range []string{"1", "2"} {
			letIn(t, f, ofQ(q)).End(Cost{Bytes: 5000})
		}
		if a, b := f.Check(ofQ("1")), f.Check(ofQ("2")); a.Allowed || !b.Allowed {
			t.Errorf("pinned %+v, allowed %+v", a, b)
		}
		if got := f.keyCounts(); got["r GET /s?q=1"] != 5000 || got["r GET /s?q=2"] != 5000 {
			t.Errorf("counted %v", got)
		}
		f.heat(t, "r GET /s?q=2")
		f.control(t)
		if d := f.Check(ofQ("2")); !d.Allowed {
			t.Errorf("what an allowed request cost was charged: %+v", d)
		}
	})
	t.Run("matcher", func(t *testing.T) {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byAll, 1, 2)}},
			WithMatcher("r", func(*http.Request) (string, bool) { return "tenant", false }))
		f.control(t, [2]string{"block", "r GET /s?key=tenant"})
		in := ofQ("1")
		in.HTTP, _ = http.NewRequest("GET", "/s?q=1", nil)
		if d := f.Check(in); d.Reason != rules.ReasonBlocked {
			t.Errorf("%+v", d)
		}
	})
	t.Run("no hot", func(t *testing.T) {
		rule := limitRule(t, "r", "GET /s", byNames("q"), 1, 2)
		rule.Except = []rules.Exception{{Values: is("q", "vip"), Limit: limit(1, 50)}}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		f.control(t, [2]string{"pin", "r GET /s?q=vip"}, [2]string{"block", "r GET /s?q=evil"}, [2]string{"allow", "r GET /s?q=free"})
		for q, want := range map[string]int{"vip": 2, "evil": 0, "free": 1000, "1": 2} {
			if n := tokens(f, ofQ(q)); n != want {
				t.Errorf("%s gets %d, want %d", q, n, want)
			}
		}
	})
}

// A key that is alternately pinned, published and marked keeps its used tokens. A spared key is
// limited while it is pinned.
func TestPinsForgiveNothing(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 1, 10)}})
	const member = "r GET /s?q=1"
	key, _ := rules.ParseKey(member)
	take := func() {
		t.Helper()
		if d := f.Check(ofQ("1")); !d.Allowed || d.Reason != rules.ReasonWithin {
			t.Fatalf("%+v", d)
		}
	}
	f.control(t, [2]string{"pin", member})
	take()
	f.heat(t, member)
	take()
	f.control(t)
	take()
	f.hot.Mark(published.Hot{Key: key})
	f.heat(t)
	take()
	f.control(t, [2]string{"pin", member})
	f.hot.Unmark(key)
	take()
	replaceHot(f.hot, "", []published.Hot{{Key: key, Spared: true, Usual: true}})
	take()
	f.control(t)
	if d := f.Check(ofQ("1")); d.Reason != rules.ReasonNone {
		t.Errorf("a spared key is limited: %+v", d)
	}
	f.heat(t)
	f.control(t, [2]string{"pin", member})
	if n := tokens(f, ofQ("1")); n != 4 {
		t.Errorf("%d tokens are left, want 4", n)
	}
	f.control(t)
	if d := f.Check(ofQ("1")); !d.Allowed || len(f.HotKeys()) != 0 {
		t.Errorf("%+v, %+v", d, f.HotKeys())
	}
}

// A rule that changes keeps its controls, and a pin waits until its rule has a limit.
func TestControlsOutliveRules(t *testing.T) {
	watched := hotRule(t, "r", "GET /s", byNames("q"), 1, 2)
	held := watched
	watched.Limit = nil
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{watched}})
	f.control(t, [2]string{"pin", "r GET /s?q=1"}, [2]string{"block", "new GET /s?q=2"})
	if n := tokens(f, ofQ("1")); n != 1000 {
		t.Errorf("%d without a limit", n)
	}
	ruleset := rules.Rules{Namespace: "test", Rules: []rules.Rule{held, hotRule(t, "new", "GET /s", byNames("q"), 1, 2)}}
	if err := f.Reload(&ruleset); err != nil {
		t.Fatal(err)
	}
	if n := tokens(f, ofQ("1")); n != 2 {
		t.Errorf("%d with a limit of 2", n)
	}
	if d := f.Check(ofQ("2")); d.Reason != rules.ReasonBlocked {
		t.Errorf("%+v", d)
	}
}

// Requests with controls follow this order of precedence: any block, any allow, pin, then the
// exceptions of the file. A request has several keys of a rule, some hot.
func TestControlsTakePrecedence(t *testing.T) {
	values := []string{"a", "b", "c"}
	excepted := []rules.Action{rules.Adjust, rules.Allow, rules.Block}
	rapid.Check(t, func(rt *rapid.T) {
		rule := hotRule(t, "r", "GET /s", byEach, 1, 1)
		actions, controlled, hot := map[string]rules.Action{}, map[string]string{}, map[string]bool{}
		var orders [][2]string
		var heated []string
		for _, v := range values {
			member := "r GET /s?q=" + v
			if a := rapid.SampledFrom(append(excepted, 99)).Draw(rt, "except "+v); a != 99 {
				actions[v] = a
				x := rules.Exception{Values: is("q", v), Action: a}
				if a == rules.Adjust {
					x.Limit = limit(1, 7)
				}
				rule.Except = append(rule.Except, x)
			}
			if c := rapid.SampledFrom([]string{"", "", "block", "allow", "pin"}).Draw(rt, "control "+v); c != "" {
				controlled[v] = c
				orders = append(orders, [2]string{c, member})
			}
			if rapid.Bool().Draw(rt, "hot "+v) {
				hot[v] = true
				heated = append(heated, member)
			}
		}
		f := newFixture(rt, rules.Rules{Rules: []rules.Rule{rule}})
		f.heat(t, heated...)
		f.control(t, orders...)
		asked := rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 3, rapid.ID).Draw(rt, "asked")

		// The reference computes how many requests pass and which keys are counted.
		passes, counts := 1000, map[string]bool{}
		blocked, allowed := false, false
		for _, v := range asked {
			blocked = blocked || controlled[v] == "block"
			allowed = allowed || controlled[v] == "allow"
		}
		for _, v := range asked {
			a, ok := actions[v]
			counts[v] = controlled[v] != "" || !ok || a == rules.Adjust
			if blocked || allowed {
				continue
			}
			switch {
			case controlled[v] == "pin":
				passes = min(passes, 1)
			case ok && a == rules.Block:
				passes = 0
			case ok && a == rules.Adjust && hot[v]:
				passes = min(passes, 7)
			case !ok && hot[v]:
				passes = min(passes, 1)
			}
		}
		if blocked {
			passes = 0
		}

		query := ""
		for i, v := range asked {
			if i > 0 {
				query += "&"
			}
			query += "q=" + v
		}
		req := get("GET /s", "/s", query)
		if n := tokens(f, req); n != passes {
			rt.Fatalf("%s: %d pass, want %d", query, n, passes)
		}
		if d := f.Check(req); blocked && d.Reason != rules.ReasonBlocked {
			rt.Fatalf("%s: %+v, want blocked", query, d)
		}
		got := f.keyCounts()
		for _, v := range asked {
			if (got["r GET /s?q="+v] > 0) != counts[v] {
				rt.Fatalf("%s: counted %v, want %v", query, got, counts)
			}
		}
	})
}

// An explanation states the effect of controls.
func TestExplainControls(t *testing.T) {
	ruleset := &rules.Rules{Namespace: "test", Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 1, 1)}}
	for action, allowed := range map[published.ControlAction]bool{published.ControlBlock: false, published.ControlAllow: true, published.ControlPin: true} {
		x, err := Explain(ofQ("1"), ExplainConfig{Rules: ruleset, Controls: []published.Control{{Key: rules.Key{Rule: "r", Text: "GET /s?q=1"}, Action: action}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Keys) != 1 || x.Decision.Allowed != allowed || x.Over.Allowed != (action == published.ControlAllow) {
			t.Errorf("%s: %+v", action, x)
		} else if fmt.Sprint(x.Keys[0].Control) != string(action) {
			t.Errorf("%s: %+v", action, x.Keys[0])
		}
	}
}
