// Package page is the aggregator's page and its API: the state of a namespace, from a
// [live.View], for browsers and programs. The aggregator's page only reads. That of `hotparam
// operate` has an [Actor], and acts.
//
//	page.go      routes
//	guard.go     access: tokens, certificates, the names of the server, headers
//	login.go     the form that takes a token, session.go the cookie that it sets,
//	             attempts.go how many wrong tokens an address may send,
//	             people.go the people who have tokens or certificates
//	api.go       JSON of the present state, rules.go of the rules
//	act.go       pin, block, allow and release, each after a confirmation.go
//	stream.go    server-sent events: one reader, and the end of a slow one
//	push.go       all readers: the changes since the last time, once for all
//	change.go    the form of such a change, row.go of a key in it
//	metrics.go   the counters as metrics
//	static/      the page itself: no build step, no third-party scripts; heat*.js are its heat map
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"path"

	"github.com/hotparam/hotparam/cmd/internal/live"
)

// LiveView is the state that the page shows. A [live.View] implements it.
type LiveView interface {
	Snapshot() *live.Snapshot
	Changed() <-chan struct{}
	Seek(id string) (seen uint64, complete bool)
	EventsAfter(seen uint64) (events []live.Event, found, lost uint64)
	Recent(n int) []live.Event
}

// Config configures a [Page]. Guard, View and Rules are required.
type Config struct {
	Guard *AccessGuard
	View  LiveView
	// Rules returns the rules in force, in words.
	Rules func() RuleList
	// Redis is the URL of the server, for the commands that the page shows. The page removes user
	// and password.
	Redis string
	// Actor carries out the orders of people. With a nil Actor the page only reads.
	Actor Actor
	// Version is the version of the program.
	Version string
	// Log receives a line when readers are cut off, at most one a minute. A nil Log disables it.
	Log *slog.Logger
}

// Page serves the page and its API. It is safe for concurrent use.
type Page struct {
	cfg    Config
	hub    *hub
	acting *acting // nil if the page only reads
}

// New returns a page. It starts nothing.
func New(c Config) *Page {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Redis = withoutCredentials(c.Redis)
	p := &Page{cfg: c, hub: newHub(&c)}
	if c.Actor != nil {
		p.acting = newActing(p)
	}
	return p
}

// Run keeps the streams up to date until ctx ends, then ends them. It must be called only once.
func (p *Page) Run(ctx context.Context) error { return p.hub.run(ctx) }

// Stats returns the counters.
func (p *Page) Stats() Stats {
	s := p.hub.stats()
	s.WrongTokens = p.cfg.Guard.attempts.total.Load()
	if p.acting != nil {
		s.Acts, s.RefusedActs = p.acting.done.Load(), p.acting.refused.Load()
	}
	return s
}

// Stats are a page's counters.
type Stats struct {
	Streams     int    // open streams
	Cut         uint64 // streams that were ended because their reader was too slow or its address had too many
	Refused     uint64 // streams that were refused because too many were open
	WrongTokens uint64
	Acts        uint64 // orders that were carried out
	RefusedActs uint64 // orders and confirmations that were refused
}

// Register adds the page, the API and /login to a mux.
func (p *Page) Register(mux *http.ServeMux) {
	g := p.cfg.Guard
	mux.Handle("GET /{$}", g.Protect(http.HandlerFunc(serveIndex)))
	mux.Handle("GET /assets/{name}", g.checkHost(http.HandlerFunc(serveAsset)))
	mux.Handle("/login", g.Login())
	mux.Handle("/logout", g.Login())
	mux.Handle("/api/v1/", g.Protect(p.api()))
}

//go:embed static
var embedded embed.FS

// static are the files of the page.
var static = func() fs.FS {
	files, err := fs.Sub(embedded, "static")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}()

func serveIndex(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	page, err := fs.ReadFile(static, "index.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(page) // the client has gone
}

// serveAsset serves a style or a script. These are not secret, and the login needs them.
// Browsers revalidate them each time and get 304, so a new version takes effect at once.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, err := fs.ReadFile(static, name)
	if err != nil || path.Ext(name) == ".html" {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(text)
	etag := `"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", contentType(name))
	_, _ = w.Write(text) // the client has gone
}

// contentType does not use the machine's tables, which may contain anything for .js.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(ext)
	}
}

// fillForm inserts fixed texts into the login form.
func fillForm(page []byte, words, help string) []byte {
	text := ""
	if words != "" {
		text = `<p class="wrong" role="alert">` + words + `</p>`
	}
	page = bytes.Replace(page, []byte("<!--message-->"), []byte(text), 1)
	return bytes.Replace(page, []byte("<!--help-->"), []byte(help), 1)
}
