//go:build real

package deploy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/config"
)

//go:generate go test -tags real . -run ^(TestPlainManifestsAreTheChart|TestChartSidecar)$ -update

var update = flag.Bool("update", false, "write what is made from the chart instead of comparing it")

// kubernetesVersions are the versions whose schemas the objects must match, with no unknown field.
const kubernetesVersions = "1.28,1.32,1.37"

type chartCase struct {
	Values map[string]any `json:"values"`
}

type chartAnswer struct {
	Error   string
	Objects []map[string]any
}

// render lints the chart and renders it for each case, with Helm's own code.
func render(t *testing.T, cases ...chartCase) []chartAnswer {
	t.Helper()
	return renderChart(t, "helm/hotparam", cases...)
}

// renderChart does the same as render for another chart.
func renderChart(t *testing.T, chart string, cases ...chartCase) []chartAnswer {
	t.Helper()
	python := real.Python(t, "helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0")
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, "helm/render.py", chart, kubernetesVersions)
	var stderr strings.Builder
	command.Stdin, command.Stderr = bytes.NewReader(input), &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var answers []chartAnswer
	if err := json.Unmarshal(output, &answers); err != nil || len(answers) != len(cases) {
		t.Fatalf("%d answers for %d cases: %v", len(answers), len(cases), err)
	}
	return answers
}

// kinds returns the aggregator's objects by kind. There is one of each.
func (a chartAnswer) kinds() map[string]map[string]any { return a.component("aggregator") }

// component returns the objects of a component by kind.
func (a chartAnswer) component(name string) map[string]map[string]any {
	kinds := make(map[string]map[string]any)
	for _, object := range a.Objects {
		if field(object, "metadata", "labels", "app.kubernetes.io/component") == name {
			kinds[object["kind"].(string)] = object
		}
	}
	return kinds
}

// field returns the value at a path of names in an object, or nil if it has none. In a list it
// follows the first element.
func field(object any, path ...string) any {
	for _, name := range path {
		switch o := object.(type) {
		case map[string]any:
			object = o[name]
		case []any:
			if len(o) == 0 {
				return nil
			}
			object = o[0].(map[string]any)[name]
		default:
			return nil
		}
	}
	return object
}

var everyday = []string{"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount", "StatefulSet"}

func TestChart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		values map[string]any
		kinds  []string // nil: the values are refused
	}{
		{map[string]any{}, everyday},
		{map[string]any{
			"redis": map[string]any{"password": "geheim", "username": "aggregator"}, "page": map[string]any{"token": "0123456789abcdef"},
			"serviceMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}}, "prometheusRule": map[string]any{"enabled": true},
			"podLabels": map[string]any{"team": "shop"}, "podAnnotations": map[string]any{"note": "1"}, "extraArgs": []string{"--pprof"},
			"nodeSelector": map[string]any{"disk": "ssd"}, "priorityClassName": "high",
		}, append([]string{"Secret", "ServiceMonitor", "PrometheusRule"}, everyday...)},
		{map[string]any{"replicas": 1, "networkPolicy": map[string]any{"enabled": false}, "serviceAccount": map[string]any{"create": false}},
			[]string{"ConfigMap", "Service", "StatefulSet"}},
		{map[string]any{"redis": map[string]any{"existingSecret": "redis"}, "page": map[string]any{"existingSecret": "page"}}, everyday},
		{map[string]any{"replicas": "two"}, nil},
		{map[string]any{"imag": map[string]any{}}, nil},
		{map[string]any{"page": map[string]any{"token": "short"}}, nil},
	}
	var cases []chartCase
	for _, test := range tests {
		cases = append(cases, chartCase{test.values})
	}
	answers := render(t, cases...)
	for i, test := range tests {
		answer := answers[i]
		if test.kinds == nil {
			if answer.Error == "" {
				t.Errorf("case %d: %v is accepted", i, test.values)
			}
			continue
		}
		kinds := answer.kinds()
		if got := slices.Sorted(maps.Keys(kinds)); answer.Error != "" || !slices.Equal(got, slices.Sorted(slices.Values(test.kinds))) {
			t.Errorf("case %d: %q, want %q; %s", i, got, test.kinds, answer.Error)
			continue
		}
		checkChartConfig(t, kinds)
		configMap, _ := field(kinds["ConfigMap"], "metadata", "name").(string)
		checkChartPods(t, kinds, "StatefulSet", configMap)
		if got, want := field(kinds["StatefulSet"], "spec", "serviceName"), field(kinds["Service"], "metadata", "name"); got != want {
			t.Errorf("case %d: serviceName is %v, want %v", i, got, want)
		}
		if rule, ok := kinds["PrometheusRule"]; ok {
			groups, _ := field(rule, "spec", "groups").([]any)
			if len(groups) != 2 {
				t.Errorf("%d groups of alerts", len(groups))
			}
		}
	}
}

// checkChartConfig checks that the file in the ConfigMap is valid and agrees with the chart's
// objects.
func checkChartConfig(t *testing.T, kinds map[string]map[string]any) {
	t.Helper()
	text, _ := field(kinds["ConfigMap"], "data", "hotparam.yaml").(string)
	file, err := config.Parse("hotparam.yaml", []byte(text))
	if err != nil {
		t.Errorf("%v\n%s", err, text)
		return
	}
	replicas, _ := field(kinds["StatefulSet"], "spec", "replicas").(float64)
	if len(file.StatsD.Addresses) != int(replicas) || file.Aggregator.Lease != (replicas > 1) {
		t.Errorf("%v replicas, counts are sent to %q, with a lease %v", replicas, file.StatsD.Addresses, file.Aggregator.Lease)
	}
	environment := make(map[string]string) // the Secret's key by the variable
	variables, _ := field(kinds["StatefulSet"], "spec", "template", "spec", "containers", "env").([]any)
	for _, v := range variables {
		key, _ := field(v, "valueFrom", "secretKeyRef", "key").(string)
		environment[field(v, "name").(string)] = key
		secret, made := kinds["Secret"]
		if key != "" && made && field(secret, "stringData", key) == nil {
			t.Errorf("the Secret has no %s", key)
		}
	}
	for _, name := range []string{file.Aggregator.Redis.PasswordEnv, file.Aggregator.PageTokenEnv} {
		if name != "" && environment[name] == "" {
			t.Errorf("the file wants the variable %s, which comes from no Secret", name)
		}
	}
}

// checkChartPods checks that a workload's pods have no more rights than they need, and that the
// Service and the policies select them. The ConfigMap's file must be mounted as a directory: with
// subPath it would not change with the ConfigMap.
func checkChartPods(t *testing.T, kinds map[string]map[string]any, workload, configMap string) {
	t.Helper()
	set := kinds[workload]
	for path, want := range map[string]any{
		"spec template spec securityContext runAsNonRoot":                        true,
		"spec template spec automountServiceAccountToken":                        false,
		"spec template spec containers securityContext readOnlyRootFilesystem":   true,
		"spec template spec containers securityContext allowPrivilegeEscalation": false,
		"spec template spec containers volumeMounts mountPath":                   "/etc/hotparam",
		"spec template spec containers volumeMounts subPath":                     nil,
		"spec template spec containers livenessProbe httpGet path":               "/-/healthy",
		"spec template spec containers readinessProbe httpGet path":              "/-/ready",
		"spec template spec volumes configMap name":                              configMap,
	} {
		if got := field(set, strings.Fields(path)...); got != want {
			t.Errorf("%s: %s: %v, want %v", workload, path, got, want)
		}
	}
	component := field(set, "metadata", "labels", "app.kubernetes.io/component")
	labels, _ := field(set, "spec", "template", "metadata", "labels").(map[string]any)
	for _, selector := range []any{
		field(set, "spec", "selector", "matchLabels"), field(kinds["Service"], "spec", "selector"),
		field(kinds["NetworkPolicy"], "spec", "podSelector", "matchLabels"), field(kinds["PodDisruptionBudget"], "spec", "selector", "matchLabels"),
	} {
		wanted, found := selector.(map[string]any)
		if found && wanted["app.kubernetes.io/component"] != component {
			t.Errorf("%s: the selector %v is not confined to component %v", workload, wanted, component)
		}
		for name, value := range wanted {
			if labels[name] != value {
				t.Errorf("%s: pods have %s=%v, a selector wants %v", workload, name, labels[name], value)
			}
		}
	}
}

const plainHead = `# The aggregator for Kubernetes, without Helm: what the chart in ../helm makes of its defaults, by
# "make manifests". deploy/README.md says what to change.
#
#   kubectl apply -f deploy/kubernetes/hotparam.yaml
`

// The plain manifests are what the chart renders by default, without Helm's own labels.
func TestPlainManifestsAreTheChart(t *testing.T) {
	t.Parallel()
	alerts, err := os.ReadFile("prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	compareMade(t, "helm/hotparam/files/alerts.yml", string(alerts)) // needs no Helm
	answer := render(t, chartCase{map[string]any{}})[0]
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
	text := plainHead
	for _, object := range answer.Objects {
		if labels, ok := field(object, "metadata", "labels").(map[string]any); ok {
			delete(labels, "helm.sh/chart")
			delete(labels, "app.kubernetes.io/managed-by")
		}
		text += "---\n" + yamlOf(t, object)
	}
	compareMade(t, "kubernetes/hotparam.yaml", text)
}

func yamlOf(t *testing.T, object any) string {
	t.Helper()
	document, err := yaml.MarshalWithOptions(withIntegers(object), yaml.UseLiteralStyleIfMultiline(true), yaml.IndentSequence(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// withIntegers returns a JSON value with its whole numbers as integers. YAML would write them as
// 80.0, which Kubernetes refuses for an integer.
func withIntegers(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		for name := range v {
			v[name] = withIntegers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = withIntegers(v[i])
		}
	}
	return value
}

// compareMade fails the test if a generated file does not have the text want. With -update it
// writes the file.
func compareMade(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what it is made from: run \"make manifests\" (%v)", path, err)
	}
}
