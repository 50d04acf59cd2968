package chaos

import (
	"reflect"
	"testing"
	"time"
)

func eventTexts(c Config) (texts []string) {
	for _, e := range plan(&c) {
		texts = append(texts, e.String())
	}
	return texts
}

// A seed gives the same events each time, and another seed gives others.
func TestPlanFollowsItsSeed(t *testing.T) {
	c := Config{Seed: 7, Duration: 30 * time.Minute, Scenario: "all", Redis: "single", Counts: "statsd"}
	first := eventTexts(c)
	if again := eventTexts(c); !reflect.DeepEqual(first, again) {
		t.Error("the same seed made other events")
	}
	c.Seed++
	if other := eventTexts(c); reflect.DeepEqual(first, other) {
		t.Error("another seed made the same events")
	}
}

// In half an hour each kind of event comes, in each deployment that has it.
func TestPlanHasAllKinds(t *testing.T) {
	for _, redis := range RedisDeployments {
		for _, counts := range CountTransports {
			c := Config{Seed: 1, Duration: 30 * time.Minute, Scenario: "all", Redis: redis, Counts: counts}
			seen := make(map[*eventKind]int)
			for _, e := range plan(&c) {
				for _, k := range e.parts {
					seen[k]++
				}
				if len(e.parts) == 2 && e.parts[0].exclusive == e.parts[1].exclusive {
					t.Errorf("two of a group at a time: %v", e.String())
				}
			}
			for _, k := range c.kinds() {
				if seen[k] == 0 && k.weight > 0 {
					t.Errorf("%s, %s: no %s", redis, counts, k.name)
				}
			}
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Scenario: "all", Redis: "single", Counts: "statsd", Only: []string{"split"}}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []Config{
		{Scenario: "none", Redis: "single", Counts: "statsd"},
		{Scenario: "all", Redis: "moon", Counts: "statsd"},
		{Scenario: "all", Redis: "single", Counts: "pigeon"},
		{Scenario: "all", Redis: "single", Counts: "statsd", Only: []string{"moonfall"}},
		{Scenario: "all", Redis: "single", Counts: "statsd", Only: []string{"kill-kafka"}},
		{Scenario: "kafka", Redis: "single", Counts: "statsd"},
	} {
		if err := c.validate(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
