package config

import (
	"strings"
	"testing"
)

const webhookRules = "rules: [{id: a, match: {route: \"*\"}, limit: 1/s}]\n"

func TestWebhook(t *testing.T) {
	for text, want := range map[string]Webhook{
		"webhook: {url: https://h/x, secret_file: s}\n":                          {URL: "https://h/x", SecretFile: "s", Format: WebhookJSON},
		"webhook: {url_env: HOOK, secret_env: S, format: json}\n":                {URLEnv: "HOOK", SecretEnv: "S", Format: WebhookJSON},
		"webhook: {url_file: slack.url, format: slack}\n":                        {URLFile: "slack.url", Format: WebhookSlack},
		"webhook: {url: http://127.0.0.1:8000/, secret_env: S, format: slack}\n": {URL: "http://127.0.0.1:8000/", SecretEnv: "S", Format: WebhookSlack},
		"": {},
	} {
		f, err := Parse("f", []byte(text+webhookRules))
		if err != nil || f.Webhook != want || f.Webhook.On() != (text != "") {
			t.Errorf("%s: %+v, %v, want %+v", text, f, err, want)
		}
	}
	for text, want := range map[string]string{
		"webhook: {}\n":                                                "webhook: url is missing",
		"webhook: {url: https://h/x}\n":                                "neither secret_file nor secret_env",
		"webhook: {url: ftp://h/x, secret_env: S}\n":                   "want a URL that begins with https:// or http://",
		"webhook: {url: 'https://u:geheim@h/x', secret_env: S}\n":      "do not belong in it",
		"webhook: {url: https://h/x, secret: geheim, secret_env: S}\n": "a secret does not belong in this file",
		"webhook: {url: https://h/x, url_env: U, secret_env: S}\n":     "the URL is in two places",
		"webhook: {url: https://h/x, secret_env: S, secret_file: f}\n": "are both there",
		"webhook: {url: https://h/x, secret_env: S, format: xml}\n":    "webhook.format",
		"webhook: {url: https://h/x, secret_env: S, to: x}\n":          "unknown field \"to\"",
	} {
		_, err := Parse("f", []byte(text+webhookRules))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
