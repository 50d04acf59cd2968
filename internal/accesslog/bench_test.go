package accesslog

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// benchLines returns a log of n requests with microseconds, 1,000 targets and 100 clients.
func benchLines(n int, line func(Entry) string) []byte {
	var b bytes.Buffer
	for i := range n {
		e := entry(0, i*7919%1000)
		e.Time = midnight.Add(time.Duration(i) * 123 * time.Microsecond)
		e.Target = "/Archives/edgar/data?cik=860857&accession=0000860857-01-500004&doc=" + e.Target[5:]
		b.WriteString(line(e))
	}
	return b.Bytes()
}

// BenchmarkDecode measures one line, without reading it.
func BenchmarkDecode(b *testing.B) {
	for name, line := range map[string]func(Entry) string{"combined": combinedLine, "json": jsonLine} {
		b.Run(name, func(b *testing.B) {
			text := bytes.TrimSpace(benchLines(1, line))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			d, r := decoder{format: Auto}, parsedLine{}
			for b.Loop() {
				if err := d.decode(text, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodeServers measures a line as servers write it. Compare its bytes of log per second
// with those of BenchmarkDecode.
func BenchmarkDecodeServers(b *testing.B) {
	for _, name := range []string{"caddy/access.log", "nginx/uri.log", "nginx/ingress.log", "envoy/istio.log", "envoy/text.log", "traefik/access.log", "nginx/fields.tsv"} {
		b.Run(name, func(b *testing.B) {
			text, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				b.Fatal(err)
			}
			line, _, _ := bytes.Cut(text, []byte{'\n'})
			d, r := decoder{format: Auto}, parsedLine{}
			if strings.HasSuffix(name, ".tsv") {
				d.format = TSV
				if d.fields, err = ParseFields("time=1,method=2,uri=3,caller=4,status=5,bytes=6,duration=7", "s"); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.decode(line, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLog measures the whole way from the stored bytes to the entries: "file" sorts, "stdin"
// streams.
func BenchmarkLog(b *testing.B) {
	const n = 200_000
	for name, line := range map[string]func(Entry) string{"combined": combinedLine, "json": jsonLine} {
		for packing, pack := range map[string]func([]byte) []byte{"plain": plain, "zstd": zstded} {
			stored := pack(benchLines(n, line))
			file := writeFile(b, "bench.log", stored)
			for _, source := range []string{"file", "stdin"} {
				b.Run(strings.Join([]string{name, packing, source}, "/"), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						names := []string{file}
						if source == "stdin" {
							names[0] = "-"
						}
						l, err := Open(names, Options{Stdin: bytes.NewReader(stored)})
						if err != nil {
							b.Fatal(err)
						}
						got := 0
						for _, err := range l.Entries(context.Background()) {
							if got++; err != nil {
								b.Fatal(err)
							}
						}
						if got != n {
							b.Fatal(got)
						}
					}
					b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
				})
			}
		}
	}
}

// BenchmarkMemory reports the memory of a request while a log is sorted, and the part of it that
// is text.
func BenchmarkMemory(b *testing.B) {
	const n = 500_000
	var before, after runtime.MemStats
	d, r := decoder{format: Auto}, parsedLine{}
	lines := bytes.Split(bytes.TrimSpace(benchLines(1000, jsonLine)), []byte{'\n'})
	for b.Loop() {
		var s sorted
		text := 0
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range n {
			if err := d.decode(lines[i%len(lines)], &r); err != nil {
				b.Fatal(err)
			}
			text += len(r.method) + len(r.addr) + len(r.target)
			s.add(&r)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/request")
		b.ReportMetric(float64(text)/n, "textB/request")
		runtime.KeepAlive(s)
	}
}
