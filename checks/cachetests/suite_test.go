package cachetests

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/tests.json
var suiteText []byte

// suite is a group of the suite's tests.
type suite struct {
	ID    string
	Tests []suiteTest

	Name, Description string
	SpecAnchors       []string `json:"spec_anchors"`
}

// suiteTest is a series of requests, with the origin's responses and what is expected of the cache.
type suiteTest struct {
	ID          string
	Kind        string // required, optimal or check
	Requests    []exchange
	BrowserOnly bool `json:"browser_only"`
	CDNOnly     bool `json:"cdn_only"`

	Name, Description string
	SpecAnchors       []string `json:"spec_anchors"`
	DependsOn         []string `json:"depends_on"`
	BrowserSkip       bool     `json:"browser_skip"`
}

// exchange is a request of a test, the origin's response to it, and the expectations. The suite's
// CONTRIBUTING.md describes the members.
type exchange struct {
	Method         string  `json:"request_method"`
	RequestHeaders []field `json:"request_headers"`
	RequestBody    string  `json:"request_body"`
	Filename       string
	QueryArg       string   `json:"query_arg"`
	MagicIMS       bool     `json:"magic_ims"`
	RFC850Date     []string `json:"rfc850date"`
	PauseAfter     bool     `json:"pause_after"`

	ResponseStatus   []any     `json:"response_status"`
	ResponseHeaders  []field   `json:"response_headers"`
	ResponseBody     string    `json:"response_body"`
	ResponsePause    int       `json:"response_pause"`
	InterimResponses []interim `json:"interim_responses"`
	MagicLocations   bool      `json:"magic_locations"`
	Disconnect       bool

	Setup                   bool
	SetupTests              []string        `json:"setup_tests"`
	ExpectedType            string          `json:"expected_type"`
	ExpectedMethod          string          `json:"expected_method"`
	ExpectedStatus          json.RawMessage `json:"expected_status"`        // null: any
	ExpectedText            json.RawMessage `json:"expected_response_text"` // null: any
	CheckBody               *bool           `json:"check_body"`
	ExpectedRequestHeaders  []field         `json:"expected_request_headers"`
	ExpectedResponseHeaders []field         `json:"expected_response_headers"`
	ExpectedMissingHeaders  []field         `json:"expected_response_headers_missing"`
	ExpectedInterim         []interim       `json:"expected_interim_responses"`

	Redirect, Cache string // of browsers
}

// isSetup reports whether an expectation only prepares the test.
func (x *exchange) isSetup(member string) bool {
	return x.Setup || slices.Contains(x.SetupTests, member)
}

// status returns the status of the origin's response, or zero if the test states none.
func (x *exchange) status() int {
	if len(x.ResponseStatus) == 0 {
		return 0
	}
	return int(x.ResponseStatus[0].(float64))
}

// field is a header's name, or an array of the name and what is said about it.
type field struct {
	name string
	args []any
}

func (f *field) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &f.name)
	}
	var all []any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	f.name, f.args = all[0].(string), all[1:]
	return nil
}

// value returns the field's value. Numbers in headers that are dates are seconds relative to now.
func (f *field) value(x *exchange, now time.Time, location string) string {
	name := strings.ToLower(f.name)
	switch v := f.args[0].(type) {
	case float64:
		layout := http.TimeFormat
		if slices.Contains(x.RFC850Date, name) {
			layout = "Monday, 02-Jan-06 15:04:05 GMT"
		}
		return now.Add(time.Duration(v) * time.Second).UTC().Format(layout)
	case string:
		if x.MagicLocations && (name == "location" || name == "content-location") {
			return strings.TrimSuffix(location+"/"+v, "/")
		}
		return v
	}
	panic("a header has a value of another type")
}

// interim is the status of an informational response, and its headers.
type interim struct {
	status int
	header http.Header
}

func (i *interim) UnmarshalJSON(text []byte) error {
	var fields []field
	parts := []any{&i.status, &fields}
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	i.header = make(http.Header)
	for _, f := range fields {
		i.header.Add(f.name, f.args[0].(string))
	}
	return nil
}

// loadSuite returns the tests that concern caches other than browsers, by group.
func loadSuite(t *testing.T) []suite {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(suiteText))
	d.DisallowUnknownFields() // a member that is ignored would make a test weaker
	var all []suite
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Tests = slices.DeleteFunc(all[i].Tests, func(t suiteTest) bool { return t.BrowserOnly })
		for j := range all[i].Tests {
			if c := &all[i].Tests[j]; c.Kind == "" {
				c.Kind = "required"
			}
		}
	}
	return all
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
