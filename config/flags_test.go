package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

func TestFromFlags(t *testing.T) {
	ruleset, err := FromFlags("cik, path:id", "10/s", "5/1m")
	if err != nil {
		t.Fatal(err)
	}
	if err := ruleset.Validate(); err != nil {
		t.Fatal(err)
	}
	want := rules.Rule{
		ID: "replay", Match: rules.Match{Route: route(t, "*")},
		By: rules.By{Kind: rules.ByNames, Names: []rules.Param{
			{Name: "cik"}, {Source: rules.Path, Name: "id"},
		}},
		Hot:   []rules.Threshold{{Rate: rules.Rate{N: 10, Per: time.Second}, Exit: rules.Percent(80), Hold: 10 * time.Second, CoolDown: 5 * time.Second}},
		Limit: &rules.Limit{Quota: rules.Quota{Algorithm: rules.TokenBucket, Rate: rules.Rate{N: 5, Per: time.Minute}, Burst: 5}, Mode: rules.ModeLimit},
	}
	if ruleset.Namespace != "replay" || len(ruleset.Version) != 16 || len(ruleset.Rules) != 1 || !reflect.DeepEqual(ruleset.Rules[0], want) {
		t.Errorf("got %+v", ruleset)
	}
	other, err := FromFlags("cik, path:id", "10/s", "")
	if err != nil || other.Rules[0].Limit != nil || other.Version == ruleset.Version {
		t.Errorf("without limit: %+v, %v", other, err)
	}
	kinds := map[string]rules.ByKind{"": rules.ByAll, "all": rules.ByAll, "each": rules.ByEach, "combinations": rules.ByCombinations}
	for by, kind := range kinds {
		if rules, err := FromFlags(by, "1/s", ""); err != nil || rules.Rules[0].By.Kind != kind || rules.Validate() != nil {
			t.Errorf("--by %q: %+v, %v", by, rules, err)
		}
	}
}

// Flags write thresholds like the file.
func TestHotFlag(t *testing.T) {
	for _, hot := range []string{"200/s", " 60/1m ", "20%", "0.5%/1m", "8x", "1.5x/10s"} {
		rules, err := FromFlags("q", hot, "")
		if err != nil {
			t.Errorf("--hot %s: %v", hot, err)
			continue
		}
		if want := ruleOf(t, "hot: '"+hot+"'").Hot; !reflect.DeepEqual(rules.Rules[0].Hot, want) || rules.Validate() != nil {
			t.Errorf("--hot %s: %+v, want %+v", hot, rules.Rules[0].Hot, want)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, test := range []struct{ by, hot, limit, want string }{
		{"all", "", "", "--hot is missing, for example --hot 200/s"},
		{"all", "10", "", `--hot "10": want N/D, for example "200/s" or "60/1m"`},
		{"all", "10/1ms", "", `--hot "10/1ms": the window must be 1s to 1h`},
		{"all", "120%", "", `--hot "120%": a share must be above 0% and at most 100%`},
		{"all", "1x", "", `--hot "1x": a jump must be above 1x and at most 1000000x`},
		{"all", "20%/1ms", "", `--hot "20%/1ms": the window must be 1s to 1h`},
		{"all", "10MB/s", "", `--hot "10MB/s": the count must be a whole number of at least 1, or a fraction such as 0.5`},
		{"all", "1/s", "x/s", `--limit "x/s": the count must be a whole number of at least 1, or a fraction such as 0.5`},
		{"all", "1/s", "1/30000d", `--limit "1/30000d": limit.burst 1: a bucket of so many tokens takes over 73 years to fill at 1/30000d`},
		{"q,", "1/s", "", `--by "": the name is empty (for example q, query:q or path:id)`},
		{"q,q", "1/s", "", `--by "q": the parameter is named twice (keep one of them)`},
		{"token", "1/s", "", `--by "token": the parameter looks secret and never leaves the process, so it can make no key (if it holds no secret, add its name to secrets.except in the rules file; if it does, add it to secrets.redact: then its keys have a hash of the value)`},
	} {
		if rules, err := FromFlags(test.by, test.hot, test.limit); err == nil || err.Error() != test.want || rules != nil {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
	}
}
