package explain

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/middleware"
)

// Facts are what is in force beside the rules: the hot keys.
type Facts struct {
	Hot []hotparam.Hot
	// Unknown is why hot keys are not known, or empty.
	Unknown string
}

// readTimeout bounds the time to read facts.
const readTimeout = 2 * time.Second

// Read reads what is in force in a namespace. If it cannot be read, Unknown says why.
func Read(ctx context.Context, client redis.UniversalClient, namespace string) Facts {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	hot, err := hotkeys.List(ctx, client, namespace)
	if err != nil {
		return Facts{Unknown: "Redis cannot be asked: " + strings.TrimPrefix(err.Error(), "list hot keys: ")}
	}
	return Facts{Hot: hot}
}

func (f *Facts) known() bool { return f.Unknown == "" }

func (f *Facts) config(rules *hotparam.Rules, fit func([]byte) []byte) middleware.ExplainConfig {
	return middleware.ExplainConfig{Rules: rules, Hot: f.Hot, Fit: fit}
}

// control returns what an operator has said about the key, or nil.
func (f *Facts) control(hotparam.Key) *Control { return nil }
