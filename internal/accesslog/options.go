package accesslog

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"
)

// Options are the settings of a [Log].
type Options struct {
	// Format is the format of all files. Default: [Auto].
	Format Format

	// Fields names the fields of JSON or delimited lines. With Auto the lines are JSON.
	Fields *Fields

	// Values are the headers and cookies to read from lines that have them, as
	// "header:x-tenant", in lower case, and "cookie:id". See [Entry.Value].
	Values []string

	// Stdin is the reader that the name "-" stands for. Default: os.Stdin. If the context ends
	// while a Read of it blocks, that Read is left behind, and its result is lost.
	Stdin io.Reader

	// Reorder is how much of the log's time is held back to sort standard input. A request that
	// is written up to that long after a later one is passed on before it. Default: 10 s. If
	// Reorder is negative, requests are passed on as they come. Requests that are held back take
	// at most 256 MiB.
	Reorder time.Duration

	// Progress, if not nil, is called while bytes are read, in the goroutine that iterates. done
	// is the number of bytes read so far (compressed bytes, if compressed). total is their
	// number in all, or -1 if unknown.
	Progress func(done, total int64)
}

func (o *Options) validate() error {
	o.Format = cmp.Or(o.Format, Auto)
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
	o.Reorder = cmp.Or(o.Reorder, defaultReorder)
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
		return fmt.Errorf("format %s: its fields are fixed; --fields is for json, csv, tsv and space", o.Format)
	}
	_, err := o.Fields.shape(delimited, o.Values)
	return err
}
