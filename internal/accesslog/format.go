package accesslog

import "fmt"

// Format is how the lines of a log are written. The zero value is [Auto].
type Format string

const (
	// Auto chooses the format by the first valid line of each file.
	Auto Format = "auto"

	// Combined is the combined log format of Apache and nginx, and common,
	// which is its beginning:
	//
	//	192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET /search?q=phone HTTP/1.1" 200 512 "-" "curl/8"
	//
	// The number behind the status is the response's bytes, "-" none; if there is
	// none they are unknown. What follows is ignored, so custom endings do no harm;
	// so is a pair of double quotes around the whole line. In the request \", \\ and
	// \xHH are decoded, as both servers write them.
	Combined Format = "combined"

	// JSON is one object per line:
	//
	//	{"time":"2017-06-30T00:00:00.25Z","method":"GET","uri":"/search?q=phone","status":200,"bytes":512,"remote_addr":"192.0.2.1"}
	//
	// The first three are required, other fields are ignored, and of a field
	// that is given twice the last counts. The time is RFC 3339, or a number
	// (quoted or not) since the Unix epoch, read in the coarsest of seconds,
	// milliseconds, microseconds and nanoseconds that puts it before the year
	// 2262. The status may be a number or a string; so may the bytes, which nginx
	// calls body_bytes_sent. Whatever else they are, they are unknown. The duration
	// is in seconds.
	JSON Format = "json"

	// Caddy is that server's own log: JSON with the names that it gives.
	Caddy Format = "caddy"
	// Traefik is that server's own log: JSON with the names that it gives.
	Traefik Format = "traefik"
	// Envoy is that proxy's log: its default text, or JSON with the names that are usual.
	Envoy Format = "envoy"
	// Nginx is that server's log: JSON with the names that are usual.
	Nginx Format = "nginx"

	// CSV is lines of columns between commas, as in RFC 4180; [Options.Fields] must name them.
	CSV Format = "csv"
	// TSV is lines of columns between tabs; [Options.Fields] must name them.
	TSV Format = "tsv"
	// Space is lines of columns between spaces; one in double quotes or brackets may have
	// spaces. [Options.Fields] must name them.
	Space Format = "space"
)

// NamedFormats are the formats whose lines name their fields, or have known ones, by commas.
const NamedFormats = "auto, combined, json, caddy, traefik, envoy, nginx"

// Formats are all formats, by commas. Those that are not among [NamedFormats] need
// [Options.Fields].
const Formats = NamedFormats + ", csv, tsv, space"

// ParseFormat reads one of [Formats].
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Auto, Combined, JSON, Caddy, Traefik, Envoy, Nginx, CSV, TSV, Space:
		return f, nil
	}
	return "", fmt.Errorf("format %q is unknown; give one of %s", s, Formats)
}
