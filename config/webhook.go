package config

import (
	"cmp"
	"errors"
	"net/url"
)

// Webhook holds the settings of the URL that the aggregator posts events to, section
// "webhook:" of the file. It is off without a URL.
type Webhook struct {
	// URL is https:// or http://. A URL that is itself a secret, such as Slack's, is in the
	// file URLFile or the variable URLEnv instead.
	URL, URLFile, URLEnv string
	// SecretFile or SecretEnv names the place of the signature's key.
	SecretFile, SecretEnv string
	// Format is [WebhookJSON] or [WebhookSlack].
	Format string
}

// Formats of webhooks.
const (
	WebhookJSON  = "json"  // one event, as `hotparam watch --json` prints it
	WebhookSlack = "slack" // a message for people, about one event or several
)

// On reports whether events are posted.
func (w Webhook) On() bool { return w.URL != "" || w.URLFile != "" || w.URLEnv != "" }

// settings returns the fields of the section.
func (w *Webhook) settings() settings {
	return settings{
		{"url", unshownURL(&w.URL, schemaForm(`^https?://`), "for example https://ops.example/hotparam", CheckWebhookURL), "", "Where events are posted"},
		{"url_file", word(&w.URLFile), "", "File with the URL, if that is a secret, as Slack's"},
		{"url_env", variable(&w.URLEnv), "", "Variable with the URL"},
		{"secret_file", word(&w.SecretFile), "", "File with the signing key: openssl rand -hex 32"},
		{"secret_env", variable(&w.SecretEnv), "", "Variable with the signing key"},
		{"format", choice(&w.Format, WebhookJSON, WebhookSlack), WebhookJSON, "One event as JSON, or a message for Slack"},
	}
}

const webhookExample = "for example webhook: {url: https://ops.example/hotparam, secret_file: webhook.secret}"

func (w *Webhook) check(d *decoder, n *fileNode, v values) {
	w.settings().setDefaults()
	url, elsewhere := v.get("url"), cmp.Or(v.get("url_file"), v.get("url_env"))
	switch {
	case url == nil && elsewhere == nil:
		d.reject(n, webhookExample, "webhook: url is missing")
	case url != nil && elsewhere != nil:
		d.report(elsewhere.pos, "keep one of them", "webhook: the URL is in two places")
	case w.Format == WebhookJSON && !v.has("secret_file") && !v.has("secret_env"):
		d.reject(n, "make a secret with which the receiver verifies requests: openssl rand -hex 32 > webhook.secret", "webhook: neither secret_file nor secret_env is set")
	}
}

// CheckWebhookURL returns an error if s cannot be the URL of a webhook. The error does not
// contain s.
func CheckWebhookURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("want a URL that begins with https:// or http://")
	case u.User != nil:
		return errors.New("a user and a password do not belong in it: the receiver checks the signature")
	case u.Fragment != "":
		return errors.New("want a URL without #")
	}
	return nil
}
