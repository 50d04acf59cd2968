package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Daemon is the address of a daemon and its token.
type Daemon struct {
	// URL is the URL of its HTTP server, such as http://127.0.0.1:9125.
	URL string
	// Token is the token of its page, or empty.
	Token string
}

// ErrURL means that the URL of a daemon is not valid.
var ErrURL = errors.New("want the URL of a daemon's HTTP server, such as http://127.0.0.1:9125")

// askTimeout bounds the time of a daemon's answer.
const askTimeout = 10 * time.Second

// Ask asks a daemon to explain a request by the rules in force there.
func Ask(ctx context.Context, daemon Daemon, q RequestJSON) (Document, error) {
	none := Document{}
	base := daemon.URL
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return none, ErrURL
	}
	text, err := json.Marshal(q)
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.JoinPath(Path).String(), bytes.NewReader(text))
	if err != nil {
		return none, ErrURL
	}
	req.Header.Set("Content-Type", "application/json")
	if daemon.Token != "" {
		req.Header.Set("Authorization", "Bearer "+daemon.Token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return none, fmt.Errorf("the daemon cannot be asked: %w", errors.Unwrap(err))
	}
	defer resp.Body.Close() // the response has only been read
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err != nil {
		return none, fmt.Errorf("the daemon's answer ends early: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return none, answerError(resp.StatusCode, text)
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		return none, fmt.Errorf("the daemon's answer cannot be read: %w", err)
	}
	return d, nil
}

func answerError(status int, text []byte) error {
	var said struct{ Error string }
	_ = json.Unmarshal(text, &said) // other servers answer in other forms
	switch status {
	case http.StatusUnauthorized:
		return errors.New("the daemon wants the token of its page: give it by --token-file or HOTPARAM_TOKEN")
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return errors.New("nothing explains requests there: want the address of an aggregator's HTTP server (aggregator.http), of this version")
	}
	if said.Error == "" {
		said.Error = http.StatusText(status)
	}
	return fmt.Errorf("the daemon answers %d: %s", status, said.Error)
}
