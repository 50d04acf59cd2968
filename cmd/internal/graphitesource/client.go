package graphitesource

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// renderClient sends requests to the render API.
type renderClient struct {
	http   *http.Client
	render string
	cfg    *Config
}

func newClient(c *Config, render string) *renderClient {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c.TLS
	transport.MaxIdleConnsPerHost = 1
	return &renderClient{
		cfg:    c,
		render: render,
		http: &http.Client{
			Transport: transport,
			// Another server must not receive the password.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// seriesReply is a complete answer.
type seriesReply struct {
	series   []series
	served   time.Time // time by the server's clock, in whole seconds; zero if unknown
	received time.Time // time by our clock
	took     time.Duration
}

// fetch sends a request and reads the answer within the timeout. Its error is a [failure].
func (c *renderClient) fetch(ctx context.Context, form url.Values, maxPoints int64) (*seriesReply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.render, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, c.explain(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "hotparam")
	switch {
	case c.cfg.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	case c.cfg.User != "" || c.cfg.Password != "":
		req.SetBasicAuth(c.cfg.User, c.cfg.Password)
	}
	begun := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, resp.Body, drainMost)
		_ = resp.Body.Close()
	}()
	if err := c.refused(resp); err != nil {
		return nil, err
	}
	body := &watchedBody{Reader: resp.Body}
	r := &seriesReply{received: time.Now()}
	r.series, err = decodeAnswer(body, shape{int64(c.cfg.Step / time.Second), maxPoints, maxBytes})
	if body.err != nil { // the rest is no JSON because the connection broke
		return nil, c.explain(body.err)
	}
	if err != nil {
		return nil, err
	}
	r.took = time.Since(begun)
	if served, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		r.served = served
	}
	return r, nil
}

// drainMost is how much of an unwanted answer is read so that the connection can be reused.
const drainMost = 64 << 10

// watchedBody records the error that cut the body short.
type watchedBody struct {
	io.Reader
	err error
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// refused returns an error if the status shows that the body is no answer.
func (c *renderClient) refused(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		who := "this program, which sends neither a user nor a token"
		switch {
		case c.cfg.Token != "":
			who = "the token"
		case c.cfg.User != "" || c.cfg.Password != "":
			who = fmt.Sprintf("user %q with this password", c.cfg.User)
		}
		return failed(noAuth, fmt.Errorf("%s answers %s: it does not let in %s", c.render, resp.Status, who))
	case http.StatusNotFound:
		return failed(badStatus, fmt.Errorf("%s answers %s: is the URL that of graphite-web", c.render, resp.Status))
	}
	if location := resp.Header.Get("Location"); location != "" && resp.StatusCode/100 == 3 {
		return failed(badStatus, fmt.Errorf("%s answers %s to %s: give the URL that it redirects to", c.render, resp.Status, shortened(location)))
	}
	return &failure{badStatus, resp.StatusCode >= http.StatusInternalServerError, fmt.Errorf("%s answers %s", c.render, resp.Status)}
}

// explain adds the meaning of a network error, and what to do.
func (c *renderClient) explain(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // the message here has the URL
	}
	var timeout net.Error
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var dial *net.OpError
	why, retryable := "the connection to "+c.render+" broke", true
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &failure{timedOut, retryable, fmt.Errorf("%s did not answer within %v: is it reachable, and are there few enough series for it", c.render, c.cfg.Timeout)}
	case errors.Is(err, http.ErrSchemeMismatch):
		why, retryable = c.render+" does not speak TLS: give a URL of http", false
	case errors.As(err, &authority):
		why, retryable = "the certificate of "+c.render+" is of an authority that is not known: give it as tls ca", false
	case errors.As(err, &host):
		why, retryable = "the certificate of "+c.render+" is for another name: give it as tls server_name", false
	case errors.As(err, &dial) && dial.Op == "dial":
		why = "nothing answers at " + c.render + ": is the address right, and does graphite-web run"
	}
	return &failure{noConnect, retryable, fmt.Errorf("%s: %w", why, err)}
}
