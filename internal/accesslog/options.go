package accesslog

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Options are the settings of a [Log].
type Options struct {
	// Format of all files. Default: [Auto].
	Format Format

	// Fields names the fields of JSON or delimited lines. With Auto they are JSON.
	Fields *Fields

	// Values are the headers and cookies that are wanted of the lines that have them, as
	// "header:x-tenant", in lower case, and "cookie:id". See [Entry.Value].
	Values []string

	// Stdin is what the name "-" stands for. Default: os.Stdin. When the
	// context ends while a Read of it blocks, that Read is left to end by
	// itself, and what it yields is lost.
	Stdin io.Reader

	// Reorder is how much of the log's time is held back to sort standard input:
	// a request that is written up to so much after a later one is given before
	// it. Default: 10 s; negative: nothing, requests are given as they come. What
	// is held takes 256 MiB at most.
	Reorder time.Duration

	// Progress, if set, is called while bytes are read, in the goroutine that
	// iterates: with the bytes read so far (compressed, where they are) and
	// their total, -1 when unknown.
	Progress func(done, total int64)
}

func (o *Options) validate() error {
	if o.Format == "" {
		o.Format = Auto
	}
	if _, err := ParseFormat(string(o.Format)); err != nil {
		return err
	}
	if err := o.validateFields(); err != nil {
		return err
	}
	if len(o.Values) > maxValues {
		return fmt.Errorf("%d headers and cookies are wanted; at most %d are read", len(o.Values), maxValues)
	}
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Reorder == 0 {
		o.Reorder = defaultReorder
	}
	return nil
}

func (o *Options) validateFields() error {
	delimited := o.Format.description().isDelimited()
	switch {
	case o.Fields == nil && delimited:
		return fmt.Errorf("format %s: its columns have no names; name them with --fields", o.Format)
	case o.Fields == nil:
		return nil
	case o.Format == Auto:
		o.Format = JSON
	case o.Format != JSON && !delimited:
		return fmt.Errorf("format %s: its fields are known; give fields for json, csv, tsv or space", o.Format)
	}
	_, err := o.Fields.shape(delimited, o.Values)
	return err
}
