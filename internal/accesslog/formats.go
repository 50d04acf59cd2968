package accesslog

import (
	"fmt"
	"time"
)

// Format is the format of the lines of a log. The zero value means [Auto].
type Format string

const (
	// Auto chooses the format by the first valid line of each file.
	Auto Format = "auto"

	// Combined is the combined log format of Apache and nginx, and common,
	// which is its beginning:
	//
	//	192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET /search?q=phone HTTP/1.1" 200 512 "-" "curl/8"
	//
	// The number after the status is the size of the response in bytes, "-" if it has none. If
	// it is missing, the size is unknown. The rest of the line is ignored, so custom endings do
	// no harm. Double quotes around the whole line are ignored as well. In the request \", \\
	// and \xHH are decoded, as both servers write them.
	Combined Format = "combined"

	// JSON is one object per line:
	//
	//	{"time":"2017-06-30T00:00:00.25Z","method":"GET","uri":"/search?q=phone","status":200,"bytes":512,"remote_addr":"192.0.2.1"}
	//
	// The first three are required, and other fields are ignored. If a field is repeated, the
	// last one counts. The time is RFC 3339, or a number (quoted or not) since the Unix epoch. A
	// number is read in the coarsest of seconds, milliseconds, microseconds and nanoseconds that
	// puts it before the year 2262. The status may be a number or a string, and so may the
	// bytes, which nginx calls body_bytes_sent. Other values of these mean unknown. The duration
	// is in seconds.
	JSON Format = "json"

	// Caddy is Caddy's own log: JSON with Caddy's names.
	Caddy Format = "caddy"
	// Traefik is Traefik's own log: JSON with Traefik's names.
	Traefik Format = "traefik"
	// Envoy is Envoy's log: its default text, or JSON with the usual names.
	Envoy Format = "envoy"
	// Nginx is nginx's log: JSON with the usual names.
	Nginx Format = "nginx"

	// CSV is lines of columns separated by commas, as in RFC 4180. [Options.Fields] must name
	// them.
	CSV Format = "csv"
	// TSV is lines of columns separated by tabs. [Options.Fields] must name them.
	TSV Format = "tsv"
	// Space is lines of columns separated by spaces. A column in double quotes or brackets may
	// contain spaces. [Options.Fields] must name the columns.
	Space Format = "space"
)

// NamedFormats are the formats whose lines name their fields or have known ones, separated by
// commas.
const NamedFormats = "auto, combined, json, caddy, traefik, envoy, nginx"

// Formats are all formats, separated by commas. Formats not in [NamedFormats] need
// [Options.Fields].
const Formats = NamedFormats + ", csv, tsv, space"

// ParseFormat parses one of [Formats].
func ParseFormat(s string) (Format, error) {
	if Format(s).description() == nil {
		return "", fmt.Errorf("format %q is unknown; give one of %s", s, Formats)
	}
	return Format(s), nil
}

// description describes the lines of a format.
type description struct {
	format   Format
	expected string // expected lines, for error messages

	// fields are the fields of JSON lines. names, header and cookie are patterns (see spell) for
	// the names of fields, headers and cookies. Without names, the names are those in fields.
	fields                []knownField
	names, header, cookie string
	unit                  time.Duration // unit of a duration that has none
	forwarded             bool          // a caller may have a port, or be preceded by other callers

	// split splits delimited lines into columns. text lists the roles of the columns in order,
	// "-" for none. If it is empty, Options.Fields names the columns.
	split splitter
	text  string
}

// knownField is a field and its names, the best first. A sign is peculiar to the server's logs.
type knownField struct {
	role  role
	sign  bool
	names string
}

// Patterns for names chosen by the operator of a server: most often those of its variables or of
// headers, in either case.
const (
	anyCase   = "{name} {NAME} {Name} {dashed} {DASHED} {Dashed}"
	anyHeader = anyCase + " {snake}"
)

const (
	expectedCombined = `combined (192.0.2.1 - - [30/Jun/2017:00:00:00 +0000] "GET /search?q=phone HTTP/1.1" 200 512)`
	expectedJSON     = `JSON lines ({"time":"2017-06-30T00:00:00Z","method":"GET","uri":"/search?q=phone"})`
	expectedFields   = "any other log is read with --fields, which names the place of each field"
	expectedElse     = "; set the format to auto to have it detected; " + expectedFields
	expectedColumns  = " lines with the fields that were given" + expectedElse
)

// formats are all formats. JSON lines are detected by trying them in this order. The servers'
// fields are those of their default logs, or of their documentation and of software built on
// them.
var formats = []description{
	{format: Auto, expected: expectedCombined + " or " + expectedJSON + ", or the JSON of Caddy, Traefik, Envoy or nginx; " +
		"the format was detected, and can be set to combined or json; " + expectedFields},
	{format: Combined, expected: expectedCombined + "; if the log has another format, set it to auto or json"},
	{
		format: Caddy, expected: "Caddy's JSON (ts, request.method, request.uri)" + expectedElse,
		unit: time.Second, forwarded: true, header: "request.headers.{Name}",
		fields: []knownField{
			{roleTime, false, "ts time timestamp"},
			{roleMethod, true, "request.method"},
			{roleURI, true, "request.uri"},
			{roleCaller, false, "request.client_ip request.remote_ip request.remote_addr"},
			{roleStatus, false, "status"},
			{roleBytes, false, "size"},
			{roleDuration, false, "duration"},
		},
	},
	{
		format: Traefik, expected: "Traefik's JSON (StartUTC, RequestMethod, RequestPath)" + expectedElse,
		unit: time.Nanosecond, forwarded: true, header: "request_{Name}",
		fields: []knownField{
			{roleTime, false, "StartUTC StartLocal time"},
			{roleMethod, true, "RequestMethod"},
			{roleURI, true, "RequestPath"},
			{roleCaller, false, "ClientHost ClientAddr"},
			{roleStatus, false, "DownstreamStatus OriginStatus"},
			{roleBytes, false, "DownstreamContentSize OriginContentSize"},
			{roleDuration, false, "Duration"},
		},
	},
	{
		// Text is its default:
		// [2026-11-23T10:46:01.272Z] "GET /search?q=phone HTTP/1.1" 200 - 0 5 0 - "-" "curl/8" "id" "host" "upstream"
		format: Envoy, expected: "Envoy's default text or JSON with start_time, method, path and response_code" + expectedElse,
		unit: time.Millisecond, forwarded: true, names: anyCase, header: anyHeader, split: splitSpace, text: "time request status - - bytes duration - caller",
		fields: []knownField{
			{roleTime, false, "start_time startTime @timestamp timestamp time"},
			{roleMethod, false, "method :method request_method x_envoy_original_method"},
			{roleURI, true, "x_envoy_original_path x_envoy_origin_path :path original_path"},
			{rolePath, false, "path uri request_path request_uri"},
			{roleCaller, false, "downstream_remote_address_without_port downstream_remote_address downstream_direct_remote_address x_forwarded_for"},
			{roleStatus, true, "response_code"},
			{roleStatus, false, "status status_code"},
			{roleBytes, false, "bytes_sent response_size"},
			{roleDuration, false, "duration request_duration"},
			{noRole, true, "response_flags downstream_remote_address upstream_cluster"},
		},
	},
	{
		format: Nginx, expected: "nginx's JSON with time_iso8601, msec or time_local, and request or request_method and request_uri" + expectedElse,
		unit: time.Second, forwarded: true, header: "http_{snake}", cookie: "cookie_{name}",
		fields: []knownField{
			{roleTime, true, "time_iso8601 msec time_local"},
			{roleTime, false, "@timestamp timestamp time ts"},
			{roleMethod, true, "request_method"},
			{roleMethod, false, "method verb http_method"},
			{roleURI, true, "request_uri"},
			{rolePath, false, "uri url path request_path document_uri"},
			{roleQuery, true, "args query_string request_query"},
			{roleQuery, false, "query"},
			{roleRequest, true, "request"},
			{roleCaller, false, "remote_addr client_ip remote_ip clientip client host"},
			{roleStatus, false, "status status_code response_code"},
			{roleBytes, false, "body_bytes_sent bytes_sent body_bytes bytes"},
			{roleDuration, true, "request_time"},
			{roleDuration, false, "duration"},
			{noRole, true, "http_user_agent upstream_response_time server_protocol"},
		},
	},
	{
		format: JSON, expected: expectedJSON + "; if the log has another format, set it to auto or combined",
		unit: time.Second, header: anyHeader,
		fields: []knownField{
			{roleTime, false, "time"},
			{roleMethod, false, "method"},
			{roleURI, false, "uri"},
			{roleCaller, false, "remote_addr"},
			{roleStatus, false, "status"},
			{roleBytes, false, "bytes"},
			{roleBytes, false, "body_bytes_sent"},
			{roleDuration, false, "duration"},
		},
	},
	{format: CSV, expected: "csv" + expectedColumns, split: splitCSV},
	{format: TSV, expected: "tsv" + expectedColumns, split: splitTSV},
	{format: Space, expected: "space" + expectedColumns, split: splitSpace},
}

// description returns the description of a format, or nil if it is unknown.
func (f Format) description() *description {
	for i := range formats {
		if formats[i].format == f {
			return &formats[i]
		}
	}
	return nil
}

// isDelimited reports whether all lines of the format are columns.
func (d *description) isDelimited() bool { return d.split != nil && d.text == "" }
