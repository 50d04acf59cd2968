package interop

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// A program can form the keys of a request that repeats parameters as the middleware does.
func TestSeveralValues(t *testing.T) {
	names := []rules.Param{{Name: "q"}, {Name: "page"}, {Name: "é"}}
	queries := repeatingQueries(1000)
	output := statsdClients(t).run(t, example("several_values.py"), strings.Join(queries, "\n")+"\n", "GET /search", "q", "page", "é")
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	if len(lines) != len(queries) {
		t.Fatalf("%d lines of %d queries", len(lines), len(queries))
	}
	several, more := 0, 0
	for i, query := range queries {
		var params keytext.Params
		params.AddQuery(query)
		params.Sort()
		pairs := params.Pair(names)
		var want []string
		for j := range pairs.Len() {
			want = append(want, "GET%20/search?"+string(params.AppendPairing(nil, j)))
		}
		if pairs.More {
			more++
			want = append(want, "GET%20/search?"+string(base.AppendMore(nil)))
		}
		if len(want) > 1 {
			several++
		}
		if got := strings.Fields(lines[i]); !slices.Equal(got, want) {
			t.Errorf("%s makes %q, want %q", query, got, want)
		}
	}
	if several == more || more == 0 {
		t.Errorf("%d made several keys, %d more than eight", several, more)
	}
}

// repeatingQueries returns queries of few names and values, in any order.
func repeatingQueries(n int) (queries []string) {
	random := rand.New(rand.NewPCG(5, 5))
	for range n {
		var params []string
		for range random.IntN(12) {
			name, value := []string{"q", "page", "é", "x"}[random.IntN(4)], []string{"1", "2", "a b", "日", "😀", "ﬀ", "~more"}[random.IntN(7)]
			params = append(params, url.QueryEscape(name)+"="+url.QueryEscape(value))
		}
		queries = append(queries, strings.Join(params, "&"))
	}
	return queries
}
