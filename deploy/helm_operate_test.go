//go:build real

package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/config"
)

// The history is off unless it is wanted. Its own Redis has its own user and password.
func TestChartHistory(t *testing.T) {
	t.Parallel()
	redis := map[string]any{"url": "redis://history:6379/0", "username": "hotparam-historian", "existingSecret": "past"}
	answers := render(t, chartCase{map[string]any{}}, chartCase{map[string]any{"history": map[string]any{"enabled": true}}},
		chartCase{map[string]any{"history": map[string]any{"enabled": true, "keep": "3d", "redis": redis}}},
		chartCase{map[string]any{"history": map[string]any{"on": true}}})
	for i, want := range []config.History{
		{},
		{On: true, Keep: 7 * 24 * time.Hour, Memory: 64 << 20},
		{On: true, Keep: 3 * 24 * time.Hour, Memory: 64 << 20, Redis: config.Redis{URL: "redis://history:6379/0", Username: "hotparam-historian", PasswordEnv: "HISTORY_REDIS_PASSWORD"}},
	} {
		kinds := answers[i].kinds()
		checkChartConfig(t, kinds)
		text, _ := field(kinds["ConfigMap"], "data", "hotparam.yaml").(string)
		if file, err := config.Parse("hotparam.yaml", []byte(text)); err != nil || file.Aggregator.History != want && want.On || file.Aggregator.History.On != want.On {
			t.Errorf("case %d: %+v, want %+v (%v)", i, file.Aggregator.History, want, err)
		}
	}
	if answers[3].Error == "" {
		t.Error("a setting that does not exist is accepted")
	}
}

// The page that acts is a pod of its own over TLS, with a Redis user and Secrets of its own.
func TestChartOperate(t *testing.T) {
	t.Parallel()
	operate := func(more map[string]any) chartCase {
		values := map[string]any{"enabled": true, "existingSecret": "operate", "tlsSecret": "operate-tls"}
		maps.Copy(values, more)
		return chartCase{map[string]any{
			"operate": values, "redis": map[string]any{"username": "aggregator", "password": "geheim"},
			"history": map[string]any{"enabled": true, "redis": map[string]any{"url": "redis://history:6379/0", "username": "hotparam-historian", "existingSecret": "past"}},
		}}
	}
	answers := render(t, operate(nil), operate(map[string]any{"hosts": []string{"operate.example"}, "redis": map[string]any{"username": "ann", "url": "redis://replica:6379/0"}}),
		operate(map[string]any{"existingSecret": ""}), operate(map[string]any{"tlsSecret": ""}))
	for i, want := range []config.Redis{
		{URL: "redis://redis:6379/0", Username: "hotparam-operator", PasswordEnv: "REDIS_PASSWORD"},
		{URL: "redis://replica:6379/0", Username: "ann", PasswordEnv: "REDIS_PASSWORD"},
	} {
		kinds := answers[i].component("operate")
		if got := slices.Sorted(maps.Keys(kinds)); answers[i].Error != "" || !slices.Equal(got, []string{"ConfigMap", "Deployment", "NetworkPolicy", "Service"}) {
			t.Errorf("case %d: %q %s", i, got, answers[i].Error)
			continue
		}
		checkChartPods(t, kinds, "Deployment", "hotparam-operate")
		text, _ := field(kinds["ConfigMap"], "data", "hotparam.yaml").(string)
		file, err := config.Parse("hotparam.yaml", []byte(text))
		if err != nil || file.Aggregator.Redis != want {
			t.Errorf("case %d: Redis %+v, want %+v (%v)", i, file.Aggregator.Redis, want, err)
			continue
		}
		want.URL = "redis://history:6379/0"
		if file.Aggregator.History.Redis != want {
			t.Errorf("case %d: the history is read in %+v, want %+v", i, file.Aggregator.History.Redis, want)
		}
		args, _ := field(kinds["Deployment"], "spec", "template", "spec", "containers", "args").([]any)
		var words []string
		for _, arg := range args {
			words = append(words, arg.(string))
		}
		line := strings.Join(words, " ")
		for _, flag := range []string{"operate --config=/etc/hotparam/hotparam.yaml", "--http=:9128", "--tokens=/run/hotparam/people/people", "--cert=/run/hotparam/tls/tls.crt", "--key=/run/hotparam/tls/tls.key"} {
			if !strings.Contains(line, flag) {
				t.Errorf("case %d: no %s in %s", i, flag, line)
			}
		}
		if strings.Contains(line, "--hosts=operate.example") != (i == 1) {
			t.Errorf("case %d: %s", i, line)
		}
		if strings.Contains(yamlOf(t, kinds["Deployment"]), "geheim") || strings.Contains(text, "geheim") {
			t.Errorf("case %d: a password is in the open", i)
		}
	}
	for i := 2; i < 4; i++ {
		if answers[i].Error == "" {
			t.Errorf("case %d: without a Secret it is accepted", i)
		}
	}
}
