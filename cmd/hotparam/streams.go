package main

import (
	"encoding/json"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
)

// streams are the input and outputs of a command. It writes data to out and everything else to
// err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// terminal reports whether w is a terminal that a person looks at.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// newJSON returns an encoder to w. It does not escape "&", which keys contain, so that they stay
// readable.
func newJSON(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(termtext.NewEscapingWriter(w))
	enc.SetEscapeHTML(false)
	return enc
}

// writeJSON writes a single value for people to read, in lines.
func writeJSON(w io.Writer, v any) error {
	enc := newJSON(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printable escapes text from outside. All such text passes through it before it is shown.
var printable = termtext.Printable
