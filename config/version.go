package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// decisive is the part of a file that decides which keys a request has, whether a key is hot,
// and what happens to its requests. Members of a fleet must agree in it. The rest configures
// transport and processes, which may differ between members.
type decisive struct {
	Rules     rules.Rules
	Instances int
	Hold      time.Duration // how long the last hot keys are limited
	Paths     string        // the form in which a guard's rules see paths
	Caller    bool          // whether a guard takes the client's address from gateways
}

// version returns the [rules.Rules.Version] of the file: a hash of its decisive part in
// canonical form. Comments, quotes, the order of fields, the spelling of durations, and
// explicit defaults do not change it. The order of rules does.
func (f *File) version() string {
	d := decisive{Rules: *f.Rules, Instances: f.Instances, Hold: f.Aggregator.HoldDuringOutage, Paths: f.Guard.WithDefaults().Paths, Caller: f.Guard.TrustCaller}
	d.Rules.Version = ""
	d.Rules.Rules = withoutDefaultScopes(d.Rules.Rules)
	// An aggregator has no key. Instances show an id of their key next to the version.
	d.Rules.Redact.Key = nil
	d.Rules.Bodies = d.Rules.Bodies.WithDefaults()
	d.Rules.Client.Trusted = slices.SortedFunc(slices.Values(d.Rules.Client.Trusted), netip.Prefix.Compare)
	d.Rules.Redact.Names = slices.SortedFunc(slices.Values(d.Rules.Redact.Names), func(a, b rules.Param) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	sum := sha256.Sum256(appendCanonical(nil, reflect.ValueOf(d)))
	return hex.EncodeToString(sum[:8])
}

// withoutDefaultScopes returns a copy of the rules whose limits have no scope where it is the
// default, which depends on the rule. Whether there is a Redis does not matter: processes that
// read the same file may reach it by flags.
func withoutDefaultScopes(all []rules.Rule) []rules.Rule {
	all = slices.Clone(all)
	for i := range all {
		r := &all[i]
		shorten := func(l *rules.Limit) *rules.Limit {
			if l == nil {
				return nil
			}
			short := *l
			if short.Scope = ""; r.ScopeOf(&short) != l.Scope {
				return l
			}
			return &short
		}
		r.Limit, r.Except = shorten(r.Limit), slices.Clone(r.Except)
		for j := range r.Except {
			r.Except[j].Limit = shorten(r.Except[j].Limit)
		}
	}
	return all
}

// sameAsZero has values of fields that mean the same as zero, by type and field.
var sameAsZero = map[string]any{
	"Rules.LimitKeys": rules.DefaultLimitKeys,
	"Limit.Outage":    rules.OutageLocal,
	"Limit.Queue":     rules.DefaultQueue,
	"Quota.Zone":      "UTC",
}

// appendCanonical appends v, which must not contain a map. A struct consists of its fields in
// the order of their names, without zero fields. So a field that a later version adds changes
// nothing for files that do not use it.
func appendCanonical(dst []byte, v reflect.Value) []byte {
	switch x := v.Interface().(type) { // types whose fields cannot be read here
	case rules.Route:
		return strconv.AppendQuote(dst, x.String())
	case rules.Secrets:
		extra, except := x.Names()
		return fmt.Appendf(dst, "%q%q", extra, except)
	case netip.Prefix:
		return append(dst, x.String()...)
	}
	switch v.Kind() {
	case reflect.Struct:
		fields := reflect.VisibleFields(v.Type())
		slices.SortFunc(fields, func(a, b reflect.StructField) int { return cmp.Compare(a.Name, b.Name) })
		dst = append(dst, '{')
		for _, field := range fields {
			if value := v.FieldByIndex(field.Index); len(field.Index) == 1 && !isDefault(v.Type(), field.Name, value) {
				dst = append(appendCanonical(append(append(dst, field.Name...), ':'), value), ',')
			}
		}
		return append(dst, '}')
	case reflect.Slice:
		dst = append(dst, '[')
		for i := range v.Len() {
			dst = append(appendCanonical(dst, v.Index(i)), ',')
		}
		return append(dst, ']')
	case reflect.Pointer:
		return appendCanonical(dst, v.Elem())
	case reflect.String:
		return strconv.AppendQuote(dst, v.String())
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint8, reflect.Float64:
		return fmt.Appendf(dst, "%#v", v.Interface())
	}
	panic("config: a field of rules has a type without canonical form: " + v.Type().String())
}

// isDefault reports whether a field of a struct has the same meaning as if it were not in the
// file.
func isDefault(structType reflect.Type, field string, value reflect.Value) bool {
	if value.Kind() == reflect.Slice {
		return value.Len() == 0
	}
	if secrets, ok := value.Interface().(rules.Secrets); ok {
		extra, except := secrets.Names()
		return len(extra)+len(except) == 0
	}
	return value.IsZero() || value.Interface() == sameAsZero[structType.Name()+"."+field]
}
