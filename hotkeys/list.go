package hotkeys

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
)

// List reads the keys of a namespace that are hot in Redis now, the highest
// rate first. Until is on Redis's clock, and is the entry's own end; where no
// publisher has given a sign of life, nothing is hot. The deadline is that of
// ctx.
func List(ctx context.Context, client redis.UniversalClient, namespace string) ([]hotparam.Hot, error) {
	if !hotparam.ValidNamespace(namespace) {
		return nil, fmt.Errorf("list hot keys: namespace %q: want one or more of A-Z a-z 0-9 _ -", namespace)
	}
	set, err := readWholeSet(ctx, client, NewLayout(namespace))
	if err != nil {
		return nil, fmt.Errorf("list hot keys: %w", err)
	}
	if set.beat == 0 {
		return nil, nil
	}
	hot := slices.DeleteFunc(set.hot, func(h hotparam.Hot) bool { return !h.Until.After(set.at) })
	sortByRate(hot)
	return hot, nil
}

// sortByRate puts the highest rate first, and equal ones in the order of their
// keys.
func sortByRate(hot []hotparam.Hot) {
	slices.SortFunc(hot, func(a, b hotparam.Hot) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	})
}
