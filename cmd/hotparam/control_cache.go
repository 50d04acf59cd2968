package main

import (
	"context"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/rules"
)

// keepsNoAnswers reports whether the key's rule is known to have no on_hot. The rules may be nil.
func keepsNoAnswers(ruleset *rules.Rules, key rules.Key) bool {
	if ruleset == nil {
		return false
	}
	r := ruleByID(ruleset, key.Rule)
	return r != nil && r.OnHot == nil
}

// dropAnswers makes all instances drop the answers of a key. Controls and holds of the key do not
// change.
func (op *operation) dropAnswers(ctx context.Context, w io.Writer, client redis.UniversalClient, key rules.Key) error {
	namespace := op.redisPlace.namespace
	if err := hotkeys.InvalidateTag(ctx, client, namespace, onhot.TagID(key.String())); err != nil {
		return op.explain(err, operatorUser)
	}
	if op.json {
		return newJSON(w).Encode(struct {
			Namespace string `json:"namespace"`
			Key       string `json:"key"`
			Rule      string `json:"rule"`
			Cache     string `json:"cache"`
		}{namespace, key.Text, key.Rule, "dropped"})
	}
	_, err := fmt.Fprintf(w, "all instances drop the answers of %s (rule %s) in namespace %s within a second\n", printable(key.Text), printable(key.Rule), namespace)
	return err
}
