package middleware

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/middleware/internal/bodies"
	"github.com/hotparam/hotparam/rules"
)

// readForm adds the values that [http.Request.Form] has: the query's and the body's.
func (r *reading) readForm(x *paramReader) {
	if r.in.http() == nil {
		return
	}
	list := &r.params.list
	for i := range list.Len() {
		if p := list.At(i); p.Source == rules.Query && p.Name == x.param.Name {
			r.addNamed(x, p.Value)
		}
	}
	if text, ok := r.readBody(rules.Form); ok {
		r.endBody(r.addForm(text))
	}
}

// addForm adds the fields of a form that rules of the route name, and reports whether the form
// is well-formed. A url-encoded form always is: it is decoded like the query. So it has each
// value that net/http finds, even if net/http also reports an error.
func (r *reading) addForm(text []byte) bool {
	contentType := strings.TrimLeft(r.in.http().Header.Get("Content-Type"), " \t")
	if len(contentType) >= len(bodies.Multipart) && strings.EqualFold(contentType[:len(bodies.Multipart)], bodies.Multipart) {
		return r.addMultipart(text, contentType)
	}
	one := &r.params.custom                                   // not in use yet
	whole := unsafe.String(unsafe.SliceData(text), len(text)) // valid until the last Reset
	for pair := range strings.SplitSeq(whole, "&") {          // Split would take many times the memory of the body
		if one.AddQuery(pair); one.Len() > 0 {
			field := one.At(0)
			r.addField(field.Name, field.Value)
			one.Reset()
		}
	}
	return true
}

// addField adds a field of the body for each reader of its name.
func (r *reading) addField(name, value string) {
	for _, x := range r.route.bodyReaders {
		if x.param.Source == rules.Form && x.param.Name == name {
			r.addNamed(x, value)
		}
	}
}

// addMultipart implements addForm for multipart/form-data. It skips files.
func (r *reading) addMultipart(text []byte, contentType string) bool {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return false
	}
	type field struct{ name, value string }
	var fields []field // added only if the whole body is well-formed
	parts := multipart.NewReader(bytes.NewReader(text), params["boundary"])
	for {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF means that the body breaks off
			break
		}
		if err != nil {
			return false
		}
		name := part.FormName()
		if name == "" || part.FileName() != "" || !r.route.readsField(name) {
			continue
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return false
		}
		fields = append(fields, field{name, string(value)})
	}
	for _, f := range fields {
		r.addField(f.name, f.value)
	}
	return true
}

// readsField reports whether a rule names the field of a form.
func (r *route) readsField(name string) bool {
	for _, x := range r.bodyReaders {
		if x.param.Source == rules.Form && x.param.Name == name {
			return true
		}
	}
	return false
}
