//go:build real

package rls

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/hotparam/hotparam/checks/real"
)

type node = map[string]any

// Envoy accepts the configuration that the recipes for Istio and Envoy Gateway add.
func TestRecipesForKubernetes(t *testing.T) {
	t.Parallel()
	const manager = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
	for _, name := range []string{"istio.yaml", "envoy-gateway.yaml"} {
		text, err := os.ReadFile("../../../../deploy/gateways/envoy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Spec struct {
				ConfigPatches []struct {
					ApplyTo string `yaml:"applyTo"`
					Patch   struct{ Value node }
				} `yaml:"configPatches"`
				JSONPatches []struct {
					Operation struct {
						Path  string
						Value node
					}
				} `yaml:"jsonPatches"`
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		connections := node{"stat_prefix": "in", "route_config": node{}}
		cluster := node{"name": "outbound|9131||hotparam-guard.hotparam.svc.cluster.local", "connect_timeout": "1s"}
		var filters []any
		for _, p := range file.Spec.ConfigPatches {
			if p.ApplyTo == "HTTP_FILTER" {
				filters = append(filters, p.Patch.Value)
				continue
			}
			for key, value := range p.Patch.Value["typed_config"].(node) {
				connections[key] = value
			}
		}
		for _, p := range file.Spec.JSONPatches {
			switch path := p.Operation.Path; {
			case path == "":
				cluster = p.Operation.Value
			case strings.HasSuffix(path, "/http_filters/0"):
				filters = append(filters, p.Operation.Value)
			default:
				connections[path[strings.LastIndex(path, "/")+1:]] = p.Operation.Value
			}
		}
		if len(filters) != 1 || connections["local_reply_config"] == nil {
			t.Fatalf("%s: %d filters, %v", name, len(filters), connections)
		}
		connections["@type"] = manager
		connections["http_filters"] = append(filters, node{"name": "router", "typed_config": node{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}})
		whole, err := yaml.Marshal(node{"static_resources": node{
			"clusters": []any{cluster},
			"listeners": []any{node{
				"address":       node{"socket_address": node{"address": "127.0.0.1", "port_value": 0}},
				"filter_chains": []any{node{"filters": []any{node{"name": "http", "typed_config": connections}}}},
			}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		real.ValidateEnvoy(t, string(whole))
	}
}
