//go:build real

package deploy_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// guardCases are values of the chart with a guard. Their ports are the ports of its Service, by
// name. If ports is nil, the chart refuses the values.
var guardCases = []struct {
	values string // a name for messages
	guard  map[string]any
	ports  map[string]float64
}{
	{"default", map[string]any{}, map[string]float64{"grpc-rls": 9131, "http": 9126}},
	{"all doors", map[string]any{
		"ports": map[string]any{"auth": 9132, "check": 9133, "spoe": 9134}, "token": "0123456789abcdef", "service": map[string]any{"clusterIP": "None"},
		"podLabels": map[string]any{"team": "shop"}, "extraArgs": []string{"--shadow"}, "allow": []string{"10.0.0.0/8"},
		"extraVolumes": []any{map[string]any{"name": "tls", "secret": map[string]any{"secretName": "guard-tls"}}}, "extraVolumeMounts": []any{map[string]any{"name": "tls", "mountPath": "/tls"}},
	}, map[string]float64{"grpc-rls": 9131, "http-auth": 9132, "http-check": 9133, "tcp-spoe": 9134, "http": 9126}},
	{"existing secret", map[string]any{"ports": map[string]any{"rls": 0, "check": 7000, "http": 7001}, "existingSecret": "mine"},
		map[string]float64{"http-check": 7000, "http": 7001}},
	{"no door", map[string]any{"ports": map[string]any{"rls": 0}}, nil},
	{"low port", map[string]any{"ports": map[string]any{"rls": 80}}, nil},
	{"short token", map[string]any{"token": "short"}, nil},
	{"anybody", map[string]any{"allow": []string{}}, nil},
}

// The guard's pods have few rights, its Service and policies select them, and the program accepts
// their flags and their file.
func TestChartGuard(t *testing.T) {
	t.Parallel()
	var cases []chartCase
	for _, test := range guardCases {
		test.guard["enabled"] = true
		cases = append(cases, chartCase{map[string]any{"guard": test.guard, "serviceMonitor": map[string]any{"enabled": true}}})
	}
	answers := render(t, cases...)
	for i, test := range guardCases {
		answer := answers[i]
		if (answer.Error != "") != (test.ports == nil) {
			t.Errorf("%s: %s", test.values, answer.Error)
		}
		if test.ports == nil {
			continue
		}
		checkChartConfig(t, answer.kinds())
		kinds := answer.component("guard")
		if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, []string{"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceMonitor"}) {
			t.Errorf("%s: %q", test.values, got)
			continue
		}
		checkChartPods(t, kinds, "Deployment", "hotparam")
		if name := field(kinds["Deployment"], "metadata", "name"); name != "hotparam-guard" {
			t.Errorf("%s: the Deployment is %v", test.values, name)
		}
		if field(kinds["Service"], "spec", "selector", "app.kubernetes.io/component") != "guard" {
			t.Errorf("%s: the Service selects aggregators", test.values)
		}
		checkGuardPorts(t, kinds, test.ports)
		file, _ := field(answer.kinds()["ConfigMap"], "data", "hotparam.yaml").(string)
		checkGuardStarts(t, field(kinds["Deployment"], "spec", "template", "spec", "containers"), file)
		if secret, made := answer.kinds()["Secret"]; made != (test.guard["token"] != nil) || made && field(secret, "stringData", "guard-token") != test.guard["token"] {
			t.Errorf("%s: the Secret is %v", test.values, secret)
		}
	}
}

// checkGuardPorts checks that the Service, the container and the NetworkPolicy have these ports.
func checkGuardPorts(t *testing.T, kinds map[string]map[string]any, want map[string]float64) {
	t.Helper()
	named := func(ports any, number string) map[string]float64 {
		found := make(map[string]float64)
		list, _ := ports.([]any)
		for _, port := range list {
			found[field(port, "name").(string)], _ = field(port, number).(float64)
		}
		return found
	}
	container := named(field(kinds["Deployment"], "spec", "template", "spec", "containers", "ports"), "containerPort")
	service := named(field(kinds["Service"], "spec", "ports"), "port")
	if !maps.Equal(container, want) || !maps.Equal(service, want) {
		t.Errorf("the container has %v, the Service %v, want %v", container, service, want)
	}
	open := make(map[string]float64)
	rules, _ := field(kinds["NetworkPolicy"], "spec", "ingress").([]any)
	for _, rule := range rules {
		ports, _ := field(rule, "ports").([]any)
		for _, port := range ports {
			name := field(port, "port").(string)
			open[name] = want[name]
		}
	}
	if !maps.Equal(open, want) {
		t.Errorf("the NetworkPolicy opens %v", open)
	}
}

// checkGuardStarts runs the program with the flags and the file of a container, and --dry-run.
func checkGuardStarts(t *testing.T, container any, file string) {
	t.Helper()
	if testing.Short() {
		return // it would build the program
	}
	path := filepath.Join(t.TempDir(), "hotparam.yaml")
	write(t, path, file)
	args := []string{"--dry-run"}
	list, _ := field(container, "args").([]any)
	for _, arg := range list {
		args = append(args, strings.ReplaceAll(arg.(string), "/etc/hotparam/hotparam.yaml", path))
	}
	if len(list) == 0 || list[0] != "guard" {
		t.Fatalf("%v runs no guard", list)
	}
	command := exec.CommandContext(t.Context(), testenv.Binary(t), append(args[1:], args[0])...)
	variables, _ := field(container, "env").([]any)
	for _, variable := range variables {
		value, isText := field(variable, "value").(string)
		if !isText {
			value = "0123456789abcdef" // of a Secret
		}
		command.Env = append(command.Env, field(variable, "name").(string)+"="+value)
	}
	command.Env = append(command.Env, "HOTPARAM_REDIS="+testenv.Redis(t).URL())
	if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), ": good, ") {
		t.Errorf("%q: %v\n%s", args, err, output)
	}
}

// sidecarChart is a chart that depends on ours and runs the guard as a sidecar.
var sidecarChart = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\nicon: https://shop.example/icon.png\n" +
		"dependencies:\n  - {name: hotparam, version: 0.1.0, repository: \"file://charts/hotparam\"}\n",
	"values.yaml": "{}\n",
	"templates/gateway.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: gateway, labels: {app.kubernetes.io/component: gateway}}
spec:
  selector: {matchLabels: {app: gateway}}
  template:
    metadata: {labels: {app: gateway}}
    spec:
      initContainers:
        - {{- include "hotparam.guardSidecar" (dict "of" .Subcharts.hotparam "doors" (dict "rls" 9131 "auth" 9132 "spoe" 9134)) | nindent 10 }}
      containers:
        - {name: nginx, image: "nginx:1.31.3"}
      volumes:
        - {{- include "hotparam.guardVolume" .Subcharts.hotparam | nindent 10 }}
`,
}

const sidecarHead = `# The guard as a sidecar of a gateway or an application, which asks it on 127.0.0.1. Put the name
# of the Deployment in the place of my-gateway:
#
#   kubectl patch -f deploy/gateways/kubernetes/guard-sidecar.yaml --patch-file deploy/gateways/kubernetes/guard-sidecar.yaml
#
# or name it in a kustomization.yaml, and leave this file as it is:
#
#   patches: [{path: guard-sidecar.yaml, target: {kind: Deployment, name: NAME}}]
#
# The rules are in the ConfigMap hotparam of the same namespace, which the chart makes, or
# "kubectl create configmap hotparam --from-file hotparam.yaml". Take out the doors that the
# gateway does not use. "make manifests" writes this file, from the template
# hotparam.guardSidecar of the chart.
`

// The template hotparam.guardSidecar gives a chart that depends on ours a sidecar that Kubernetes
// and the program accept. The file guard-sidecar.yaml is its output.
func TestChartSidecar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "charts", "hotparam"), os.DirFS("helm/hotparam")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "templates"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range sidecarChart {
		write(t, filepath.Join(dir, name), text)
	}
	token := map[string]any{"enabled": true, "token": "0123456789abcdef"}
	answers := renderChart(t, dir, chartCase{map[string]any{}}, chartCase{map[string]any{"hotparam": map[string]any{"guard": token}}})
	for i, answer := range answers {
		if answer.Error != "" {
			t.Fatal(answer.Error)
		}
		pod := field(answer.component("gateway")["Deployment"], "spec", "template", "spec")
		file, _ := field(answer.kinds()["ConfigMap"], "data", "hotparam.yaml").(string)
		checkGuardStarts(t, field(pod, "initContainers"), file)
		if i > 0 {
			continue
		}
		template := map[string]any{"spec": map[string]any{"initContainers": field(pod, "initContainers"), "volumes": field(pod, "volumes")}}
		compareMade(t, "gateways/kubernetes/guard-sidecar.yaml", sidecarHead+yamlOf(t, map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "my-gateway"}, // which kustomize wants
			"spec": map[string]any{"template": template},
		}))
	}
}

// The recipes for Istio and Envoy Gateway name the Service of a release called hotparam in the
// namespace hotparam.
func TestRecipesNameTheService(t *testing.T) {
	for _, recipe := range []string{"istio.yaml", "envoy-gateway.yaml"} {
		text, err := os.ReadFile(filepath.Join("gateways", "envoy", recipe))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "hotparam-guard.hotparam.svc.cluster.local") || !strings.Contains(string(text), "9131") {
			t.Errorf("%s asks another Service", recipe)
		}
	}
}
