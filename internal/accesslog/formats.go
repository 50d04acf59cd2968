package accesslog

import (
	"net/textproto"
	"strings"
	"time"
)

// known are the servers' logs of JSON lines, as they come or as their documentation and what
// is built on them have them; a name of a list stands before those that come after it.
var known = []struct {
	format Format
	fields []knownField
	unit   time.Duration // of a duration without one
	// place is where it has a header or a cookie.
	place func(source, name string) [][]string
}{
	{format: Caddy, unit: time.Second, place: caddyHeader, fields: []knownField{
		{roleTime, false, "ts time timestamp"},
		{roleMethod, true, "request.method"},
		{roleURI, true, "request.uri"},
		{roleCaller, false, "request.client_ip request.remote_ip request.remote_addr"},
		{roleStatus, false, "status"},
		{roleBytes, false, "size"},
		{roleDuration, false, "duration"},
	}},
	{format: Traefik, unit: time.Nanosecond, place: traefikHeader, fields: []knownField{
		{roleTime, false, "StartUTC StartLocal time"},
		{roleMethod, true, "RequestMethod"},
		{roleURI, true, "RequestPath"},
		{roleCaller, false, "ClientHost ClientAddr"},
		{roleStatus, false, "DownstreamStatus OriginStatus"},
		{roleBytes, false, "DownstreamContentSize OriginContentSize"},
		{roleDuration, false, "Duration"},
	}},
	{format: Envoy, unit: time.Millisecond, place: plainHeader, fields: []knownField{
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
	}},
	{format: Nginx, unit: time.Second, place: nginxHeader, fields: []knownField{
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
	}},
	{format: JSON, unit: time.Second, place: plainHeader, fields: []knownField{
		{roleTime, false, "time"},
		{roleMethod, false, "method"},
		{roleURI, false, "uri"},
		{roleCaller, false, "remote_addr"},
		{roleStatus, false, "status"},
		{roleBytes, false, "bytes"},
		{roleBytes, false, "body_bytes_sent"},
		{roleDuration, false, "duration"},
	}},
}

// knownField are the names of a field, the best first. Signs are peculiar to the server.
type knownField struct {
	role  role
	sign  bool
	names string
}

// knownShape is the shape of a server's log, with the headers and cookies that are wanted.
func knownShape(f Format, values []string) *shape {
	for _, k := range known {
		if k.format != f {
			continue
		}
		s := &shape{root: newNode(), unit: k.unit, values: len(values), forwarded: f != JSON}
		ranks := [roles + 1]uint8{}
		for _, field := range k.fields {
			for name := range strings.FieldsSeq(field.names) {
				for _, spelled := range spellings(f, name) {
					n := s.root.child(strings.Split(spelled, ".")...)
					n.sign = n.sign || field.sign
					if n.role == noRole {
						n.role, n.rank = field.role, ranks[field.role]
					}
				}
				if f != JSON || field.role != roleBytes { // of the two names the last counts
					ranks[field.role]++
				}
			}
		}
		s.want(values, k.place)
		return s
	}
	return nil
}

// spellings are how a name is written: Envoy's names are chosen by whoever runs it, and are
// most often those of its variables or of the headers, in one case or the other.
func spellings(f Format, name string) []string {
	if f != Envoy {
		return []string{name}
	}
	var all []string
	for _, s := range []string{name, strings.ReplaceAll(name, "_", "-")} {
		all = append(all, s, strings.ToUpper(s), textproto.CanonicalMIMEHeaderKey(s))
	}
	return all
}

// want makes the shape take headers and cookies.
func (s *shape) want(values []string, place func(source, name string) [][]string) {
	for i, value := range values {
		source, name, _ := strings.Cut(value, ":")
		for _, path := range place(source, name) {
			if n := s.root.child(path...); n.value < 0 {
				n.value = i
			}
		}
		if source == "cookie" {
			for _, path := range place("header", "cookie") {
				n := s.root.child(path...)
				n.cookies = append(n.cookies, cookie{name, i})
			}
		}
	}
}

func caddyHeader(source, name string) [][]string {
	if source != "header" {
		return nil
	}
	return [][]string{{"request", "headers", textproto.CanonicalMIMEHeaderKey(name)}}
}

func traefikHeader(source, name string) [][]string {
	if source != "header" {
		return nil
	}
	return [][]string{{"request_" + textproto.CanonicalMIMEHeaderKey(name)}}
}

// nginxHeader has them as $http_name and $cookie_name.
func nginxHeader(source, name string) [][]string {
	switch source {
	case "header":
		return [][]string{{"http_" + strings.ReplaceAll(name, "-", "_")}}
	case "cookie":
		return [][]string{{"cookie_" + name}}
	}
	return nil
}

func plainHeader(source, name string) [][]string {
	if source != "header" {
		return nil
	}
	var all [][]string
	for _, s := range spellings(Envoy, name) {
		all = append(all, []string{s})
	}
	return append(all, []string{strings.ReplaceAll(name, "-", "_")})
}
