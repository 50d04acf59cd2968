package gateways

import "testing"

func TestSum(t *testing.T) {
	t.Parallel()
	metrics := "# TYPE hotparam_guard_checks_total counter\n" +
		"hotparam_guard_checks_total{decision=\"passed\",door=\"rls\"} 12\n" +
		"hotparam_guard_checks_total{decision=\"refused\",door=\"rls\"} 1.5e+06\n" +
		"hotparam_guard_connections{door=\"rls\"} 7\n"
	if got := sum([]byte(metrics), checks); got != 1500012 {
		t.Errorf("checks: %d", got)
	}
}

func TestBatchesHaveEachTargetOnce(t *testing.T) {
	t.Parallel()
	if n := len(batches(cold.targets())); n != coldValues/batch {
		t.Errorf("%d batches of %d", n, coldValues)
	}
	if n := len(batches(make([]string, 2*batch+1))); n != 3 {
		t.Errorf("%d batches of %d", n, 2*batch+1)
	}
}

func TestConfigNamesGatewaysThatThereAre(t *testing.T) {
	t.Parallel()
	if err := (&Config{Only: []string{"nginx", "any program"}}).validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []Config{{Only: []string{"apache"}}, {Turns: -1}} {
		if c.validate() == nil {
			t.Errorf("no error of %+v", c)
		}
	}
}
