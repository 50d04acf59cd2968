package config

import (
	"errors"
	"net/url"
)

// Webhook is where the aggregator posts events, section "webhook:" of the file. It is off if
// there is no URL.
type Webhook struct {
	// URL is https:// or http://. A URL that is a secret itself, as Slack's, is in the file
	// URLFile or the variable URLEnv instead.
	URL, URLFile, URLEnv string
	// SecretFile or SecretEnv is where the key of the signature is.
	SecretFile, SecretEnv string
	// Format is [WebhookJSON] or [WebhookSlack].
	Format string
}

// Formats of webhooks.
const (
	WebhookJSON  = "json"  // one event, as `hotparam watch --json` prints it
	WebhookSlack = "slack" // a message for people, of one event or several
)

// On reports whether events are posted.
func (w Webhook) On() bool { return w.URL != "" || w.URLFile != "" || w.URLEnv != "" }

var webhookSection = section{
	name: "webhook", prefix: "webhook.",
	fields:  []string{"url", "url_file", "url_env", "secret_file", "secret_env", "format"},
	example: "for example webhook: {url: https://ops.example/hotparam, secret_file: webhook.secret}",
}

func (d *decoder) webhook(n *node) Webhook {
	v := d.section(n, webhookSection)
	if n == nil {
		return Webhook{}
	}
	var w Webhook
	if s, ok := d.scalar(v.get("url"), "webhook.url"); ok {
		if err := CheckWebhookURL(s); err != nil {
			// It is not shown: it may be a secret.
			d.reject(v.get("url"), "for example https://ops.example/hotparam", "webhook.url: %v", err)
		}
		w.URL = s
	}
	w.URLFile, w.URLEnv = d.password(v, webhookSection.prefix, "url")
	w.SecretFile, w.SecretEnv = d.password(v, webhookSection.prefix, "secret")
	if w.Format, _ = d.choice(v.get("format"), "webhook.format", WebhookJSON, WebhookSlack); w.Format == "" {
		w.Format = WebhookJSON
	}
	url, elsewhere := v.get("url"), v.get("url_file")
	if elsewhere == nil {
		elsewhere = v.get("url_env")
	}
	switch {
	case url == nil && elsewhere == nil:
		d.reject(n, webhookSection.example, "webhook: url is missing")
	case url != nil && elsewhere != nil:
		d.report(elsewhere.at, "keep one of them", "webhook: the URL is in two places")
	case w.Format == WebhookJSON && !v.has("secret_file") && !v.has("secret_env"):
		d.reject(n, "the receiver checks by it that a request is ours: openssl rand -hex 32 > webhook.secret", "webhook: neither secret_file nor secret_env is there")
	}
	return w
}

// CheckWebhookURL reports an error of the URL of a webhook. The error does not show it.
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
