package history

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// The JSON form is that of the example and of docs/WATCHING.md, whose readers others write.
func TestJSONOfAView(t *testing.T) {
	const none = published.Unknown
	v := View{
		From: 1_764_340_000, To: 1_764_340_060, Step: 10, LeftOut: 12, Gaps: [][2]int64{{1_764_340_030, 1_764_340_050}},
		Rows: []Row{
			{"search", "GET /search", "q=phone", rules.Requests, []Cell{{0, 120, 120, 0}, {1, 980, 1010, 640}, {2, 1500, 1500, 1000}, {5, 90, 90, none}}},
			{"search", "GET /search", "q=%C3%A4pfel", rules.Requests, []Cell{{0, 12, 12, none}, {2, 14, none, none}, {5, 11, 31, none}}},
			{"by-user", "", "ctx:user=42", rules.Millis, []Cell{{1, 5300, 5300, none}}},
		},
		Rest: []Row{
			{"search", "GET /search", "", rules.Requests, []Cell{{0, 4100, 4100, none}, {1, 4230, none, none}, {2, 4090, 4090, none}, {5, 3999, 3999, none}}},
			{"by-user", "", "", rules.Millis, []Cell{{0, 700, 700, none}, {1, 810, 810, none}, {2, 790, 790, none}, {5, 640, 640, none}}},
		},
		Marks: []Mark{
			{1_764_340_009, MarkDeploy, "", "", "3 instances of v1.8.2, 1 of v1.8.1"},
			{1_764_340_012, MarkHot, "search", "GET /search?q=phone", "212-230 in 1s, hot at 200/s"},
			{1_764_340_020, MarkRules, "", "", "rules version 3f2a91c0"},
			{1_764_340_024, MarkControl, "search", "GET /search?q=phone", "blocked until 14:40, by ann: scraper"},
			{1_764_340_050, MarkFault, "", "", "no aggregator wrote for 20s"},
		},
	}
	text, err := os.ReadFile("testdata/view.json")
	must(t, err)
	var got, want any
	must(t, json.Unmarshal(v.AppendJSON(nil), &got))
	must(t, json.Unmarshal(text, &want))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant %s", v.AppendJSON(nil), text)
	}
	if _, err := json.Marshal(&v); err != nil {
		t.Error(err)
	}
}
