package published

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

const summaryShop = `{"near":[{"rule":"search-terms","key":"GET /search?q=tv","rate":124,"low":124,"ratio":0.62,"kind":"rate","threshold":"200/s","min":200,"window_ms":1000,"unit":"requests"}],` +
	`"traffic":[{"rule":"search-terms","route":"GET /search","unit":"requests","rate":3120,"keys":940}]}`

func TestSummaryGolden(t *testing.T) {
	s := Summary{
		Near: []Hot{{
			Key: rules.Key{Rule: "search-terms", Text: "GET /search?q=tv"}, Rate: 124, Low: 124, High: 124, Ratio: 0.62,
			Cause: Cause{Rate: rules.Rate{N: 200, Per: time.Second}},
		}},
		Traffic: []Traffic{{Rule: "search-terms", Route: "GET /search", Rate: 3120, Keys: 940}},
	}
	if got := string(EncodeSummary(&s)); got != summaryShop {
		t.Errorf("\n got %s\nwant %s", got, summaryShop)
	}
	if got, err := ParseSummary([]byte(summaryShop)); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, edit := range [][2]string{
		{`"rate":124`, `"rate":-1`}, {`"low":124`, `"low":-1`}, {"0.62", "-0.62"}, {`"keys":940`, `"keys":-1`}, {`3120`, `-3120`},
		{`"search-terms","key"`, `"no rule","key"`}, {`"search-terms","route"`, `"no rule","route"`}, {`"unit":"requests","rate"`, `"unit":"apples","rate"`},
		{`"near":[`, `"near":[` + strings.Repeat(`{"rule":"r"},`, MaxNear)}, {`"GET /search",`, `"` + strings.Repeat("r", maxRoute+1) + `",`},
	} {
		if got, err := ParseSummary([]byte(strings.Replace(summaryShop, edit[0], edit[1], 1))); err == nil {
			t.Errorf("%v: %+v", edit, got)
		}
	}
}

func FuzzParseSummary(f *testing.F) {
	f.Add([]byte(summaryShop))
	f.Add([]byte(`{"near":null,"traffic":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSummary(data)
		if err != nil {
			return
		}
		again, err := ParseSummary(EncodeSummary(&s))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q: read %+v, then %+v, %v", data, s, again, err)
		}
	})
}
