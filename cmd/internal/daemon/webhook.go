package daemon

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hotparam/hotparam/cmd/internal/webhook"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/figure"
)

// postEvents returns the companion that posts events to the webhook of the file, which must have
// one.
func postEvents(p pipeline, set *settings) (companion, error) {
	w := set.File.Webhook
	if err := checkWebhook(w); err != nil {
		return companion{}, err
	}
	sender, err := webhook.New(set.Redis, webhook.Config{
		Namespace: set.File.Rules.Namespace,
		URL:       func() (string, error) { return webhookURL(w) },
		Secret:    func() (string, error) { return base.ReadSecret(w.SecretFile, w.SecretEnv) },
		Slack:     w.Format == config.WebhookSlack,
		Publishes: p.publishes,
		UserAgent: "hotparam/" + set.Build.Version,
		Logger:    set.Log,
	})
	return companion{
		run:     func(ctx context.Context) error { return sender.Run(ctx) },
		collect: func(s figure.Samples) { figure.Collect(s, webhookMetrics, sender.Stats()) },
	}, err
}

// checkWebhook reads the files and variables that the webhook names, so that a missing one is
// reported at the start.
func checkWebhook(w config.Webhook) error {
	if !w.On() {
		return nil
	}
	if _, err := webhookURL(w); err != nil {
		return configError(fmt.Errorf("webhook.url: %w", err))
	}
	if _, err := base.ReadSecret(w.SecretFile, w.SecretEnv); err != nil {
		return configError(fmt.Errorf("webhook.secret: %w", err))
	}
	return nil
}

func webhookURL(w config.Webhook) (string, error) {
	named, err := base.ReadSecret(w.URLFile, w.URLEnv)
	if err != nil {
		return "", err
	}
	url := cmp.Or(w.URL, named)
	return url, config.CheckWebhookURL(url)
}

// webhookMetrics are the metrics of the webhook, if there is one.
var webhookMetrics = []figure.Figure[webhook.Stats]{
	figure.Flag("webhook_sending", "1 if this aggregator posts events to the webhook; one aggregator of a namespace does.",
		func(w *webhook.Stats) bool { return w.Sending }),
	figure.Gauge("webhook_queued", "Events waiting to be posted.",
		func(w *webhook.Stats) float64 { return float64(w.Queued) }),
	figure.Counter("webhook_posted_total", "Events that the webhook's receiver accepted.",
		func(w *webhook.Stats) int64 { return int64(w.Posted) }),
	figure.Counter("webhook_retries_total", "Requests to the webhook's receiver that failed, and were made again.",
		func(w *webhook.Stats) int64 { return int64(w.Retries) }),
	figure.CountersBy("webhook_dropped_total", "DATA LOSS: events that were not posted, by reason.", "reason",
		func(w *webhook.Stats, emit func(string, int64)) {
			emit("queue_full", int64(w.QueueFull))
			emit("refused", int64(w.Refused))
			emit("gave_up", int64(w.GaveUp))
			emit("too_old", int64(w.TooOld))
			emit("missed", int64(w.Missed))
		}).
		Explain("events that were not [posted](docs/WATCHING.md#the-webhook): `queue_full` (1,000 wait: the receiver " +
			"is too slow); `refused` (a redirect or a permanent 4xx); `gave_up` (no success for 15 minutes); " +
			"`too_old` (over an hour old); `missed` (Redis removed the changes before they were read)"),
}
