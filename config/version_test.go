package config

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// fieldsOf states for each field of each struct of a file whether it is part of the version of the
// rules. A field that is a struct, or a list of them, has its own row.
var fieldsOf = map[string]struct{ decide, doNot string }{
	"rules.Rules":      {decide: "Namespace Evaluate DenyNoMatch Secrets LimitKeys", doNot: "Version"},
	"rules.Redact":     {doNot: "Key"}, // not in the file
	"rules.Param":      {decide: "Source Name Value"},
	"rules.Client":     {decide: "Trusted TrustUnix Header"},
	"rules.Bodies":     {decide: "Max Total"},
	"rules.Rule":       {decide: "ID Ignore Unread Count Prefix ParamsOnly Backend"},
	"rules.Match":      {decide: "Route"},
	"rules.QueryMatch": {decide: "Name Value"},
	"rules.By":         {decide: "Kind"},
	"rules.Threshold":  {decide: "Kind Over Top Hold CoolDown"},
	"rules.Rate":       {decide: "N Per"},
	"rules.Fraction":   {decide: "Num Den"},
	"rules.Limit":      {decide: "Mode Scope Outage Wait Concurrency Cancel Queue"},
	"rules.OnHot":      {decide: "Coalesce Cache Stale Wait Max Total Vary Status"},
	"rules.Quota":      {decide: "Algorithm Burst Missing Shape WarmUp ColdFactor Calendar Zone Blocks CountDenied Penalty"},
	"rules.Priority":   {decide: "Source Name First"},
	"rules.Response":   {decide: "Status Type Body"},
	"rules.Exception":  {decide: "Action"},
	"config.File":      {decide: "Instances"},
	"config.KeyPlace":  {doNot: "File Env"},
	"config.Aggregator": {
		decide: "HoldDuringOutage",
		doNot:  "Source Name Lease Listen Readers Canonical SnapshotFile HTTP Page PageTokenFile PageTokenEnv PageHosts Pprof Memory Trust Senders KeyFile KeyEnv",
	},
	"config.Redis":     {doNot: "URL Username PasswordFile PasswordEnv SentinelUsername SentinelPasswordFile SentinelPasswordEnv CA Cert Key ServerName Insecure"},
	"config.Caps":      {doNot: "Counts Keys Names NewNames"},
	"config.History":   {doNot: "On Keep Memory"},
	"config.StatsD":    {doNot: "Addresses Spread Encoding Meta"},
	"config.Kafka":     {doNot: "Topic Acks Idempotent Compression Buffer Group Session"},
	"kafka.Connection": {doNot: "Brokers ClientID Version Timeout"},
	"kafka.TLS":        {doNot: "CA Cert Key ServerName Insecure"},
	"kafka.SASL":       {doNot: "Mechanism User PasswordFile PasswordEnv Password"},
	"config.Graphite":  {doNot: "URL Every Offset Series Rate Heartbeat Step Timeout User PasswordFile PasswordEnv TokenFile TokenEnv"},
	"config.Webhook":   {doNot: "URL URLFile URLEnv SecretFile SecretEnv Format"},
	"config.Guard":     {decide: "Paths TrustCaller", doNot: "HTTP Pprof TicketAge MaxTickets"},
	"config.Door":      {doNot: "Listen Cert Key ClientCA TokenFile TokenEnv Allow Insecure"},
	"config.AuthEndpoint": {
		doNot: "Path Scheme",
	},
}

// leaf is a field of a file without fields of its own.
type leaf struct {
	path, of, name string
	value          func(f *File) reflect.Value
}

// leavesOf returns the leaves below l, which is of type t. It creates missing values.
func leavesOf(t reflect.Type, l leaf) (all []leaf) {
	value := l.value
	switch {
	case t == reflect.TypeFor[rules.Route](), t == reflect.TypeFor[rules.Secrets](), t == reflect.TypeFor[netip.Prefix]():
	case t.Kind() == reflect.Pointer:
		l.value = func(f *File) reflect.Value {
			v := value(f)
			if v.IsNil() {
				v.Set(reflect.New(t.Elem()))
			}
			return v.Elem()
		}
		return leavesOf(t.Elem(), l)
	case t.Kind() == reflect.Slice:
		l.value = func(f *File) reflect.Value {
			v := value(f)
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(t, 1, 1))
			}
			return v.Index(0)
		}
		return leavesOf(t.Elem(), l)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() {
				all = append(all, leavesOf(field.Type, leaf{l.path + "." + field.Name, t.String(), field.Name, func(f *File) reflect.Value { return value(f).Field(i) }})...)
			}
		}
		return all
	}
	return []leaf{l}
}

// set gives the leaf a value other than its zero value.
func (l *leaf) set(t *testing.T, f *File) {
	switch v := l.value(f); x := v.Addr().Interface().(type) {
	case *rules.Route:
		*x, _ = rules.ParseRoute("/other")
	case *rules.Secrets:
		*x = rules.NewSecrets([]string{"pin"}, nil)
	case *netip.Prefix:
		*x = netip.MustParsePrefix("10.0.0.0/8")
	default:
		switch {
		case v.Kind() == reflect.String:
			v.SetString("other")
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.CanInt():
			v.SetInt(7)
		case v.CanUint():
			v.SetUint(7)
		case v.CanFloat():
			v.SetFloat(7)
		default:
			t.Fatalf("%s is of a kind that the test does not know: %s", l.path, v.Type())
		}
	}
}

// Each field of a file is listed here as changing the version of the rules or not.
func TestVersionIsOfWhatDecides(t *testing.T) {
	all := leavesOf(reflect.TypeFor[File](), leaf{value: func(f *File) reflect.Value { return reflect.ValueOf(f).Elem() }})
	used := make(map[string]bool)
	for _, l := range all {
		row := fieldsOf[l.of]
		decides, doesNot := slices.Contains(strings.Fields(row.decide), l.name), slices.Contains(strings.Fields(row.doNot), l.name)
		if decides == doesNot {
			t.Errorf("%s is new: say in fieldsOf of %q whether %s decides about keys, verdicts or limits", l.path, l.of, l.name)
			continue
		}
		used[l.of+" "+l.name] = true
		f := &File{Rules: new(rules.Rules)}
		l.value(f) // creates the structs above it
		before := f.version()
		if l.set(t, f); (f.version() != before) != decides {
			t.Errorf("%s changes the version: %v, want %v", l.path, !decides, decides)
		}
	}
	for of, row := range fieldsOf {
		for _, name := range strings.Fields(row.decide + " " + row.doNot) {
			if !used[of+" "+name] {
				t.Errorf("fieldsOf %q has %s, which is no field of a file", of, name)
			}
		}
	}
}

// Files that mean the same have the same version. Other rules, or rules in another order, have
// another one.
func TestVersionIsOfWhatIsMeant(t *testing.T) {
	const source = `
namespace: shop
secrets: {extra: [pin, puk], except: [token]}
client: {trusted: [10.0.0.0/8, 192.168.0.0/16], header: forwarded}
rules:
  - {id: a, match: {route: /a}, by: [q], hot: {rate: 60/1m, hold: 2m}, limit: {rate: 5/1m}}
  - {id: b, match: {route: /b}, limit: {rate: 1/s, burst: 3}}
`
	version := func(old, new string) string {
		t.Helper()
		text := strings.Replace(source, old, new, 1)
		if old != "" && text == source {
			t.Fatalf("there is no %q", old)
		}
		f, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, text)
		}
		return f.Rules.Version
	}
	want := version("", "")
	for _, same := range [][2]string{
		{"namespace: shop", "# the shop's\nnamespace: 'shop'"},
		{"namespace: shop", "evaluate: all\nno_match: allow\nmax_keys: 65536\nbodies: {max: 64KiB, total: 64MiB}\nnamespace: shop"},
		{"namespace: shop", "aggregator: {listen: ['127.0.0.1:9999'], http: '127.0.0.1:9998', redis: {url: 'redis://other:6379/0'}, page: off, memory: 32MiB}\nnamespace: shop"},
		{"namespace: shop", "statsd: {addresses: ['10.1.1.1:8125']}\nwebhook: {url: 'https://example.org/', secret_env: WEBHOOK}\nguard: {http: '127.0.0.1:9997', paths: clean}\nnamespace: shop"},
		{"rate: 60/1m, hold: 2m", "hold: 120s, rate: 60/60s, exit: 80%, cool_down: 5000ms"},
		{"limit: {rate: 5/1m}", "limit: {rate: 5/60s, burst: 5, algorithm: token_bucket, scope: fleet}"},
		{"burst: 3", "burst: 3, scope: instance"},
		{"limit: {rate: 5/1m}", "limit: 5/1m"},
		{"[pin, puk]", "[PUK, pin]"},
		{"[10.0.0.0/8, 192.168.0.0/16]", "[192.168.0.0/16, 10.0.0.0/8]"},
	} {
		if got := version(same[0], same[1]); got != want {
			t.Errorf("with %q the version is %s, want %s", same[1], got, want)
		}
	}
	seen := map[string]string{want: ""}
	for _, other := range [][2]string{
		{"namespace: shop", "namespace: shop2"},
		{"namespace: shop", "no_match: deny\nnamespace: shop"},
		{"namespace: shop", "instances: 4\nnamespace: shop"},
		{"namespace: shop", "aggregator: {hold_when_away: 1h}\nnamespace: shop"},
		{"namespace: shop", "guard: {paths: raw}\nnamespace: shop"},
		{"60/1m", "61/1m"},
		{"60/1m", "60/2m"},
		{"by: [q]", "by: [p]"},
		{"{id: a, match: {route: /a}", "{id: a, match: {route: /c}"},
		{"burst: 3", "burst: 4"},
		{"limit: {rate: 5/1m}", "limit: {rate: 5/1m, scope: instance}"},
		{"burst: 3", "burst: 3, scope: fleet"},
		{"[pin, puk]", "[pin]"},
		{"id: a, match: {route: /a}, by: [q], hot: {rate: 60/1m, hold: 2m}, limit: {rate: 5/1m}}\n  - {id: b, match: {route: /b}, limit: {rate: 1/s, burst: 3}", "id: b, match: {route: /b}, limit: {rate: 1/s, burst: 3}}\n  - {id: a, match: {route: /a}, by: [q], hot: {rate: 60/1m, hold: 2m}, limit: {rate: 5/1m}"},
	} {
		got := version(other[0], other[1])
		if before, found := seen[got]; found {
			t.Errorf("with %q the version is that of %q", other[1], before)
		}
		seen[got] = other[1]
	}
}

// Comments and line endings never change the version of the rules.
func TestVersionOfRandomRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, _, _ := drawSource(t)
		f, err := Parse("f.yaml", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.ReplaceAll(strings.TrimPrefix(source, "\uFEFF"), "\r\n", "\n")
		again, err := Parse("other.yaml", []byte("# again\n"+plain+"\n# end\n"))
		if err != nil || again.Rules.Version != f.Rules.Version {
			t.Fatalf("%v, version %s with comments, %s without, of\n%s", err, again.Rules.Version, f.Rules.Version, source)
		}
	})
}

// Each field that has a value like zero exists.
func TestFieldsWithAValueLikeZero(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, v := range []any{rules.Rules{}, rules.Limit{}, rules.Quota{}} {
		types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	for name, value := range sameAsZero {
		of, field, _ := strings.Cut(name, ".")
		if f, ok := types[of].FieldByName(field); !ok || !reflect.TypeOf(value).ConvertibleTo(f.Type) {
			t.Errorf("%s: no such field, or of another type than %T", name, value)
		}
	}
}
