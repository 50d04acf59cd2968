package rules

import (
	"strings"
	"testing"
	"time"
)

func TestOnHotErrors(t *testing.T) {
	for _, c := range []struct {
		onHot OnHot
		want  string
	}{
		{OnHot{}, "neither joins requests nor keeps answers"},
		{OnHot{Coalesce: true, Stale: 1}, "stale needs cache"},
		{OnHot{Cache: -1}, "on_hot.cache \"-1ns\": want 1ms to 1m0s"},
		{OnHot{Cache: time.Hour}, "want 1ms to 1m0s"},
		{OnHot{Coalesce: true, Wait: -1}, "on_hot.wait"},
		{OnHot{Coalesce: true, Max: -1}, "on_hot.max"},
		{OnHot{Coalesce: true, Max: 20 << 20}, "a quarter of total"},
		{OnHot{Coalesce: true, Total: 1}, "want 64KiB to 8GiB"},
		{OnHot{Cache: 1, Vary: []string{"accept"}}, "want header:NAME"},
		{OnHot{Cache: 1, Vary: []string{"ctx:user"}}, "want header:NAME"},
		{OnHot{Cache: 1, Vary: []string{"addr:ip"}}, "want header:NAME"},
		{OnHot{Cache: 1, Vary: []string{"header:"}}, "on_hot.vary[0]"},
		{OnHot{Cache: 1, Vary: []string{"header:a b"}}, "on_hot.vary[0]"},
		{OnHot{Cache: 1, Vary: []string{"header:*"}}, "no header has this name"},
		{OnHot{Cache: 1, Vary: []string{"header:cookie"}}, "the header holds all cookies"},
		{OnHot{Cache: 1, Vary: []string{"header:authorization"}}, "cannot be shared"},
		{OnHot{Cache: 1, Vary: []string{"header:if-none-match"}}, "cannot be shared"},
		{OnHot{Cache: 1, Vary: []string{"header:x-a", "header:x-a"}}, "named twice"},
		{OnHot{Cache: 1, Status: []int{206}}, "206"},
		{OnHot{Cache: 1, Status: []int{200, 500}}, "500"},
		{OnHot{Cache: 1, Status: []int{101}}, "101"},
		{OnHot{Cache: 1, Status: []int{200, 200}}, "named twice"},
	} {
		if err := c.onHot.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.onHot, err, c.want)
		}
	}
	good := OnHot{Coalesce: true, Cache: 500 * time.Millisecond, Stale: 2 * time.Second, Vary: []string{"header:accept-language", "cookie:lang"}, Status: []int{200, 404}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

// A rule whose requests could receive the answer of another user is refused.
func TestOnHotIsSafe(t *testing.T) {
	for _, c := range []struct {
		change func(*Rule)
		want   string // empty if the rule is good
	}{
		{func(*Rule) {}, ""},
		{func(r *Rule) { r.By.Names = []Param{{Source: Path, Name: "id"}} }, ""},
		{func(r *Rule) { r.Hot = nil }, "on_hot needs hot"},
		{func(r *Rule) { r.Count = Bytes }, "rules that count requests"},
		{func(r *Rule) { r.Match.Route = mustRoute(t, "POST /u/{id}") }, "answers to POST are never shared"},
		{func(r *Rule) { r.Match.Route = mustRoute(t, "HEAD /u/{id}") }, ""},
		{func(r *Rule) { r.By.Names = []Param{{Source: Ctx, Name: "user"}} }, "by ctx:user"},
		{func(r *Rule) { r.By.Names = []Param{{Source: Addr, Name: "ip"}} }, "by addr:ip"},
		{func(r *Rule) { r.By.Names = []Param{{Source: Header, Name: "x-tenant"}} }, "by header:x-tenant"},
		{func(r *Rule) {
			r.By.Names, r.OnHot.Vary = []Param{{Source: Header, Name: "x-tenant"}}, []string{"header:x-tenant"}
		}, ""},
		{func(r *Rule) { r.By.Names = []Param{{Source: Cookie, Name: "shop"}} }, "by cookie:shop"},
		{func(r *Rule) {
			r.By.Names, r.OnHot.Vary = []Param{{Source: Cookie, Name: "shop"}}, []string{"cookie:shop"}
		}, ""},
		{func(r *Rule) { r.By.Names = []Param{{Source: JSON, Name: "id"}} }, "requests with a body are never shared"},
		{func(r *Rule) { r.Match.Query = []QueryMatch{{"ctx:plan", "free"}} }, "by ctx:plan"},
		{func(r *Rule) { r.Limit.Priority = &Priority{Source: Ctx, Name: "tier", First: []string{"gold"}} }, "by ctx:tier"},
	} {
		rule := Rule{
			ID: "r", Match: Match{Route: mustRoute(t, "GET /u/{id}")}, By: By{Kind: ByNames, Names: []Param{{Name: "q"}}},
			Hot: []Threshold{NewThreshold(Rate{N: 100, Per: time.Second})}, OnHot: &OnHot{Coalesce: true, Cache: time.Second},
			Limit: &Limit{Quota: Quota{Rate: Rate{N: 10, Per: time.Second}}.WithDefaults(), Mode: ModeLimit},
		}
		c.change(&rule)
		err := (&Rules{Namespace: "test", Rules: []Rule{rule}}).Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", rule.By, err, c.want)
		}
	}
}
