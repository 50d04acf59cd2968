// Package filewatch reports changes of the contents of a file, however they are made. The file
// may be written in place, replaced by a rename as editors do, or removed and created again. It
// may be behind a symbolic link that is switched, as Kubernetes does when a ConfigMap changes.
//
// It polls. github.com/fsnotify/fsnotify was considered. Its notifications do not exist on
// network file systems and FUSE, an atomic ConfigMap shows as the deletion of the file, and
// every directory that a symbolic link leads through would need a watch. It would add to reading
// and comparing, and save one read of a small file each 250 ms (see BenchmarkRead). fsnotify
// does not support polling yet.
package filewatch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// Config configures [Run]. Path and OnChange are required.
type Config struct {
	Path string
	// Known is the contents of the file as the caller last read it.
	Known []byte
	// MaxSize bounds how much of the file is read, in bytes. If the file is larger, OnChange
	// receives its beginning, one byte longer than MaxSize. Zero means 1 MiB.
	MaxSize int64
	// Every is the interval at which the file is read. The default is 250 ms.
	Every time.Duration
	// OnChange receives contents that differ from the last known contents, once two reads in a
	// row have returned them. So it does not receive half a file whose second half follows
	// within Every. It may keep data.
	OnChange func(data []byte)
	// OnAccess is called with an error when two reads in a row have failed, and with nil when
	// the file can be read again. A nil OnAccess disables it.
	OnAccess func(err error)
}

// defaultEvery is the default of Config.Every. A change is reported within twice that.
const defaultEvery = 250 * time.Millisecond

// Run watches the file until ctx ends. It starts no goroutine, and calls the functions of c from
// the caller's. The file and its directory need not exist.
func Run(ctx context.Context, c Config) {
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if c.MaxSize == 0 {
		c.MaxSize = 1 << 20
	}
	if c.OnAccess == nil {
		c.OnAccess = func(error) {}
	}
	w := watch{Config: c, known: c.Known}
	ticker := time.NewTicker(c.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.poll()
		}
	}
}

// watch is the state of Run.
type watch struct {
	Config
	known    []byte
	latest   bytes.Buffer // contents of the last read
	previous []byte       // contents of the read before, if they differed from known
	differs  bool         // previous is set
	failures int          // failed reads in a row
}

// poll reads the file once.
func (w *watch) poll() {
	if err := w.read(); err != nil {
		w.differs = false
		if w.failures++; w.failures == 2 {
			w.OnAccess(err)
		}
		return
	}
	if w.failures >= 2 {
		w.OnAccess(nil)
	}
	w.failures = 0
	data := w.latest.Bytes()
	switch {
	case bytes.Equal(data, w.known):
		w.differs = false
	case w.differs && bytes.Equal(data, w.previous):
		w.known, w.previous, w.differs = w.previous, nil, false
		w.OnChange(w.known)
	default:
		w.previous, w.differs = bytes.Clone(data), true
	}
}

// read reads the file into latest.
func (w *watch) read() error {
	w.latest.Reset()
	info, err := os.Stat(w.Path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return fmt.Errorf("%s: not a regular file", w.Path)
	}
	f, err := os.Open(w.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(&w.latest, io.LimitReader(f, w.MaxSize+1))
	return err
}
