package exact

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// TraceRequest is one request of a trace.
type TraceRequest struct {
	At             int64 // nanoseconds since 1970
	Method, Target string
}

// Trace yields the requests of a trace in the order of time. The file's name determines its
// format: an access log in combined format (….log.zst) or JSON lines (….access.jsonl.zst), or
// another trace that is converted to requests:
//
//	….keys.zst      a key per line           GET /product?id=<key>, 10,000 a second
//	mooncake-….zst  hash_ids of LLM requests GET /block?hash=<id>, one for each id
//	ruetoj-….csv.zst a web server's log       as logged
//
// Traces for which [Made] returns true are passed to hotparam by [WriteJSON].
func Trace(path string) iter.Seq2[TraceRequest, error] {
	return func(yield func(TraceRequest, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(TraceRequest{}, err)
			return
		}
		defer file.Close()
		plain, err := zstd.NewReader(file)
		if err != nil {
			yield(TraceRequest{}, fmt.Errorf("%s: %w", path, err))
			return
		}
		defer plain.Close()
		read := readLog
		switch name := filepath.Base(path); {
		case strings.HasSuffix(name, ".keys.zst"):
			read = readKeys
		case strings.HasPrefix(name, "mooncake-"):
			read = readMooncake
		case strings.HasSuffix(name, ".csv.zst"):
			read = readRUET
		}
		err = read(plain, func(r TraceRequest) bool { return yield(r, nil) })
		if err != nil && !errors.Is(err, errStopped) {
			yield(TraceRequest{}, fmt.Errorf("%s: %w", path, err))
		}
	}
}

// Made reports whether the trace is converted to requests, since it is not an access log.
func Made(path string) bool {
	name := filepath.Base(path)
	return !strings.HasSuffix(name, ".log.zst") && !strings.HasSuffix(name, ".access.jsonl.zst")
}

// WriteJSON writes requests as an access log of JSON lines.
func WriteJSON(w io.Writer, requests iter.Seq2[TraceRequest, error]) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for r, err := range requests {
		if err != nil {
			return err
		}
		uri, err := json.Marshal(r.Target)
		if err != nil {
			return err
		}
		line = append(line[:0], `{"time":"`...)
		line = time.Unix(0, r.At).UTC().AppendFormat(line, time.RFC3339Nano)
		line = append(line, `","method":"`...)
		line = append(line, r.Method...)
		line = append(line, `","uri":`...)
		line = append(line, uri...)
		line = append(line, "}\n"...)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

var errStopped = errors.New("stopped")

// lines calls each for every line with its index from 0.
func lines(in io.Reader, each func(i int64, line string) error) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	for i := int64(0); scanner.Scan(); i++ {
		if err := each(i, scanner.Text()); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// readLog reads an access log and yields its requests sorted by time. It skips lines that are not
// requests.
func readLog(in io.Reader, yield func(TraceRequest) bool) error {
	var all []TraceRequest
	err := lines(in, func(_ int64, line string) error {
		if r, ok := parseCombined(line); ok {
			all = append(all, r)
		} else if r, ok := parseJSON(line); ok {
			all = append(all, r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b TraceRequest) int { return int(max(-1, min(1, a.At-b.At))) })
	for _, r := range all {
		if !yield(r) {
			return errStopped
		}
	}
	return nil
}

var (
	combined = regexp.MustCompile(`^"?\S+ .*?\[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "([A-Z][A-Z_-]*) (\S+)(?: HTTP/[\d.]+)?" `)
	absolute = regexp.MustCompile(`^\w+://[^/?]+`)
	logged   = regexp.MustCompile(`\\x[0-9A-Fa-f]{2}|\\.`)
)

func parseCombined(line string) (TraceRequest, bool) {
	m := combined.FindStringSubmatch(line)
	if m == nil {
		return TraceRequest{}, false
	}
	when, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[1])
	if err != nil {
		return TraceRequest{}, false
	}
	target := logged.ReplaceAllStringFunc(m[3], func(s string) string {
		if len(s) == 4 {
			b, _ := hex.DecodeString(s[2:])
			return string(b)
		}
		return s[1:]
	})
	return TraceRequest{when.UnixNano(), m[2], absolute.ReplaceAllString(target, "")}, true
}

func parseJSON(line string) (TraceRequest, bool) {
	var r struct {
		Time        time.Time
		Method, URI string
	}
	err := json.Unmarshal([]byte(line), &r)
	return TraceRequest{r.Time.UnixNano(), r.Method, r.URI}, err == nil && r.URI != ""
}

// began is the time at which traces without a date begin.
var began = time.Date(2013, 7, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// keysPerSecond is the rate of requests in traces without times.
const keysPerSecond = 10_000

func readKeys(in io.Reader, yield func(TraceRequest) bool) error {
	return lines(in, func(i int64, line string) error {
		if !yield(TraceRequest{began + i*int64(time.Second)/keysPerSecond, "GET", "/product?id=" + line}) {
			return errStopped
		}
		return nil
	})
}

func readMooncake(in io.Reader, yield func(TraceRequest) bool) error {
	return lines(in, func(i int64, line string) error {
		var r struct {
			Timestamp int64   // milliseconds
			HashIDs   []int64 `json:"hash_ids"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		for _, id := range r.HashIDs {
			if !yield(TraceRequest{began + r.Timestamp*int64(time.Millisecond), "GET", "/block?hash=" + strconv.FormatInt(id, 10)}) {
				return errStopped
			}
		}
		return nil
	})
}

func readRUET(in io.Reader, yield func(TraceRequest) bool) error {
	return lines(in, func(_ int64, line string) error {
		fields := strings.SplitN(line, ",", 4)
		if len(fields) < 3 {
			return nil
		}
		when, bad := time.Parse("[02/Jan/2006:15:04:05", fields[1])
		words := strings.Fields(fields[2])
		request := bad == nil && len(words) >= 2 && strings.HasPrefix(words[1], "/")
		if request && !yield(TraceRequest{when.UnixNano(), words[0], words[1]}) {
			return errStopped
		}
		return nil
	})
}
