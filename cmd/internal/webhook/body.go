package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hotparam/hotparam/cmd/internal/live"
)

// SignatureHeader is the header with the signature of a request.
const SignatureHeader = "X-Hotparam-Signature"

// IDHeader is the header with the ID of the event, or of the last of several events. A retried
// request has the same ID.
const IDHeader = "X-Hotparam-Event"

// Sign returns the value of [SignatureHeader]: "t=1732172445,v1=5257a869…". v1 is the
// HMAC-SHA256 of t, a dot and the body, in hexadecimal. The signature includes the time so that
// a receiver can refuse requests that were recorded and replayed.
func Sign(secret string, sent time.Time, body []byte) string {
	t := strconv.FormatInt(sent.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// perMessage is the largest number of events in a message for people.
const perMessage = 20

// jsonBody returns the event as `hotparam watch --json` prints it.
func jsonBody(e *live.Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "&" is part of keys, and stays readable
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// slackBody returns a message with one line for each event.
func slackBody(events []live.Event) ([]byte, error) {
	var b strings.Builder
	for i := range events {
		e := &events[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "*%s* %s `%s` in %s: %s", e.Type, plain(e.Rule), plain(e.Key), plain(e.Namespace), plain(e.Why))
		if e.Limit != "" && e.Type == live.Hot {
			b.WriteString("; limit " + plain(e.Limit))
		}
		switch e.Type {
		case live.Pin, live.Block, live.Allow:
			b.WriteString("; until " + e.Until.UTC().Format("15:04:05 MST") + ", by " + plain(e.By))
		case live.Release:
			b.WriteString("; by " + plain(e.By))
		}
	}
	return json.Marshal(map[string]string{"text": b.String()})
}

// plain returns foreign text without characters that are markup in Slack, so that a value cannot
// make a link or notify people.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, text)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
