package page

import (
	"net/url"
	"strings"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/rules"
)

// RuleList are the rules in words, in the form of /api/v1/rules.
type RuleList struct {
	Namespace string     `json:"namespace"`
	Version   string     `json:"version"`
	Rules     []RuleText `json:"rules"`
	// Also are settings in words that apply to all rules.
	Also []string `json:"also,omitempty"`
}

// RuleText is one rule in words.
type RuleText struct {
	ID    string `json:"id"`
	Words string `json:"words"`
}

// RulesOf returns rules in the words of `rules lint`.
func RulesOf(r *rules.Rules) RuleList {
	all := RuleList{Namespace: r.Namespace, Version: r.Version, Rules: make([]RuleText, 0, len(r.Rules))}
	for i := range r.Rules {
		all.Rules = append(all.Rules, RuleText{ID: r.Rules[i].ID, Words: hotwords.Rule(&r.Rules[i])})
	}
	all.Also = hotwords.Also(r)
	return all
}

// withoutCredentials returns a Redis URL without user and password, for commands that people copy
// from the page. It returns "" if the URL cannot be parsed.
func withoutCredentials(redisURL string) string {
	if !strings.Contains(redisURL, "://") { // host:port
		return redisURL
	}
	u, err := url.Parse(redisURL)
	if err != nil {
		return ""
	}
	query := u.Query()
	query.Del("username")
	query.Del("password")
	u.User, u.RawQuery = nil, query.Encode()
	return u.String()
}
