package history

import "testing"

func TestSelects(t *testing.T) {
	for _, test := range []struct {
		q    Query
		want bool
	}{
		{Query{}, true},
		{Query{Text: "PHONE"}, true},
		{Query{Text: "search-t"}, true},
		{Query{Text: "lamp"}, false},
		{Query{Text: "phone", Prefix: "q=x"}, false},
		{Query{Route: "GET /search", Prefix: "q=ph"}, true},
		{Query{Key: "q=phone"}, true},
		{Query{Route: "GET /other"}, false},
	} {
		if got := test.q.selects("search-terms", "GET /search?q=phone"); got != test.want {
			t.Errorf("%+v selects: %v, want %v", test.q, got, test.want)
		}
	}
}
