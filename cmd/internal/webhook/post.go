package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// dropLines limits the log lines about dropped events.
var dropLines = loglimit.LineRate{Burst: 4, Every: 15 * time.Second}

// maxRetryAfter bounds the delay that the receiver can ask for.
const maxRetryAfter = 5 * time.Minute

// post posts the events in the queue until ctx ends.
func (t *tenure) post(ctx context.Context) {
	for {
		events := t.first()
		if len(events) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-t.wake:
				continue
			}
		}
		last := events[len(events)-1]
		fresh := slices.DeleteFunc(events, func(e live.Event) bool { return time.Since(e.At) > t.cfg.maxAge })
		if n := len(events) - len(fresh); n > 0 {
			t.count.old.Add(uint64(n))
			t.logDrop("they are too old", n)
		}
		if len(fresh) > 0 && !t.deliver(ctx, fresh) {
			return
		}
		t.done(&last)
		if _, err := t.acquireRight(ctx, t.currentPosition()); err != nil {
			t.logRedis(ctx, err) // extendRight tries again
		}
	}
}

// deliver posts events as one request until the receiver accepts them or they are given up. It
// returns false if ctx ends first.
func (t *tenure) deliver(ctx context.Context, events []live.Event) bool {
	began := time.Now()
	for failures := 0; ; failures++ {
		wait, err := t.request(ctx, events)
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			t.count.posted.Add(uint64(len(events)))
			t.receiverOutage.Succeeded(t.cfg.Logger, time.Now(), "the webhook's receiver takes events again")
			return true
		}
		t.receiverOutage.Failed(t.cfg.Logger, outageLines, time.Now(), "the webhook's receiver does not take events", "err", err)
		switch {
		case errors.Is(err, errRefused):
			t.count.refused.Add(uint64(len(events)))
			t.logDrop(err.Error(), len(events))
			return true
		case time.Since(began) > t.cfg.patience:
			t.count.gave.Add(uint64(len(events)))
			t.logDrop("the receiver has not taken them for "+t.cfg.patience.String(), len(events))
			return true
		}
		t.count.retries.Add(1)
		if base.Sleep(ctx, max(wait, base.Backoff(failures, t.cfg.least, t.cfg.longest))) != nil {
			return false
		}
	}
}

// errRefused means that the receiver will never accept a request.
var errRefused = errors.New("refused")

// request makes one request. If it fails, wait is how long the receiver asks to wait. Errors do
// not reveal the URL, which may be secret.
func (t *tenure) request(ctx context.Context, events []live.Event) (wait time.Duration, err error) {
	var body []byte
	if t.cfg.Slack {
		body, err = slackBody(events)
	} else {
		body, err = jsonBody(&events[0])
	}
	if err != nil {
		return 0, fmt.Errorf("%w: the event cannot be written: %w", errRefused, err)
	}
	to, err := t.cfg.URL()
	if err != nil {
		return 0, fmt.Errorf("webhook.url: %w", err)
	}
	secret, err := t.cfg.Secret()
	if err != nil {
		return 0, fmt.Errorf("webhook.secret: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("webhook.url: cannot be read")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", t.cfg.UserAgent)
	r.Header.Set(IDHeader, events[len(events)-1].ID)
	if secret != "" {
		r.Header.Set(SignatureHeader, Sign(secret, time.Now(), body))
	}
	answer, err := t.http.Do(r)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL
		}
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection can be reused
	return judge(answer)
}

// temporary are the statuses after which a request is retried, since someone may be about to fix
// the receiver, its address or its key.
var temporary = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout,
	http.StatusConflict, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests,
}

// judge returns nil if the receiver accepted the events, and otherwise the error and how long it
// asks to wait.
func judge(answer *http.Response) (wait time.Duration, err error) {
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return 0, nil
	case code >= 300 && code < 400:
		return 0, fmt.Errorf("%w: it answers %d, and redirects are not followed: set webhook.url to where it leads", errRefused, code)
	case code >= 500 || slices.Contains(temporary, code):
		return retryAfter(answer.Header.Get("Retry-After"), time.Now()), fmt.Errorf("it answers %d", code)
	default:
		return 0, fmt.Errorf("%w: it answers %d", errRefused, code)
	}
}

// retryAfter parses a Retry-After header, which is a number of seconds or a date.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if when, err := http.ParseTime(header); err == nil {
		wait = when.Sub(now)
	}
	return min(max(0, wait), maxRetryAfter)
}
