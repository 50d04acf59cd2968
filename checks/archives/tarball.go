package archives

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"path"
	"slices"
	"strings"
	"time"
)

// tarball is an archive whose bytes depend only on its files and a time. The files are sorted,
// share one time, and have no owner's name.
type tarball struct {
	folder   string // folder of all files
	modified time.Time
	files    []archived
}

type archived struct {
	name string
	mode int64
	data []byte
}

func (t *tarball) add(name string, mode int64, data []byte) {
	t.files = append(t.files, archived{path.Join(t.folder, name), mode, data})
}

func (t *tarball) bytes() ([]byte, error) {
	slices.SortFunc(t.files, func(a, b archived) int { return strings.Compare(a.name, b.name) })
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zip)
	for _, f := range t.files {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: t.modified, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
