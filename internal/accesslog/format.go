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

	// Caddy, Traefik, Envoy and Nginx are the logs of these servers: JSON with the names that
	// they give, or that are usual where the user gives them. Envoy's default text is read too.
	Caddy   Format = "caddy"
	Traefik Format = "traefik"
	Envoy   Format = "envoy"
	Nginx   Format = "nginx"

	// CSV, TSV and Space are lines of columns, which [Options.Fields] must name: between
	// commas as in RFC 4180, between tabs, and between spaces, where a column in double quotes
	// or brackets may have spaces.
	CSV   Format = "csv"
	TSV   Format = "tsv"
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
