package config
import ("testing";"os";"time";"fmt";"strings";"path/filepath";"strconv";"github.com/goccy/go-yaml/lexer")
func TestZ(t *testing.T) {
	c, _ := os.UserCacheDir()
	m, _ := filepath.Glob(c+"/go-build/fuzz/github.com/hotparam/hotparam/config/FuzzParse/*")
	msgs := map[string]int{}
	for _, p := range m {
		b, _ := os.ReadFile(p)
		_, s, _ := strings.Cut(string(b), "[]byte(")
		s = strings.TrimSuffix(strings.TrimSpace(s), ")")
		u, err := strconv.Unquote(s); if err != nil { continue }
		_, perr := Parse("f", []byte(u))
		if ps, ok := perr.(Problems); ok { for _, p := range ps { if strings.Contains(p.Message, "runtime") || strings.Contains(p.Message,"not supported") && !strings.Contains(p.Message, "are not supported") { msgs[p.Message]++; if msgs[p.Message] < 3 { fmt.Printf("%s %q\n", p.Message, u) } } } }
	}
	fmt.Println(len(m), msgs)
	if os.Getenv("N") == "" { return }
	n, _ := strconv.Atoi(os.Getenv("N"))
	rep := func(s string) string { return strings.Repeat(s, n/len(s)) }
	for name, s := range map[string]string{
		"keys": func() string { var b strings.Builder; for i := 0; b.Len() < n-20; i++ { fmt.Fprintf(&b, "k%d: 1\n", i) }; return b.String() }(),
		"rules": "rules:\n" + rep("- {id: a}\n")[:n-10], "rules2": "rules:\n" + rep("- \n")[:n-10], "flow": "{"+rep("a,")[:n-3]+"}", "flow1": "rules: ["+rep("a, ")[:n-12]+"]", "flowtab": "rules: ["+rep("a,\t")[:n-12]+"]", "bad": rep("@ "), "badl": rep("@\n"), "ctl": rep("\x00"), "ctll": rep("\x00\n"), "nonutf": rep("\xff"), "url": rep("://a:b"), "url2": rep("://a:b@"), "alias": rep("*a "), "aliasl": rep("- *a\n"), "maps": "rules:\n"+rep("- a: 1\n  b: 2\n"), "deepblock": func() string { var b strings.Builder; for i := 0; b.Len() < n-2000; i++ { b.WriteString(strings.Repeat(" ", i)+"a:\n") }; return b.String() }(), "quotes": rep("'"), "dq": rep("\""), "dql": rep("\"\n"), "tags": rep("!a "), "lit": rep("a: |\n b\n")[:n/100], "items": rep("- |\n b\n"), "items2": "rules:\n"+rep(" - - a\n"), "braces": rep("{}"), "brack": rep("[]"), "flownest": "["+rep("[[[[[]]]]],")[:n-12]+"]", "comments": rep("#\n"), "colons": rep(":"), "q":rep("? a\n"), "docs": rep("---\n"), "crlf": rep("\r\n"), "fold": "a: >\n"+rep(" b\n"), "plainmulti": "a: "+rep("b\n "), "dqmulti": "a: \""+rep("b\n ")[:n-8]+"\"", "dquni": "a: \""+rep("\\u00e9")[:n-10]+"\"", "flowmulti": "["+rep("a\n ")[:n-3]+"]", "qmap": "rules: [{match: {query: {"+func() string { var b strings.Builder; for i := 0; b.Len() < n-50; i++ { fmt.Fprintf(&b, "k%d: 1,", i) }; return b.String() }()+"}}}]", "longline": "rules: [{match: "+rep("a")[:n-20]+"}]", "colonsp": rep("a: b "), "spacedash": rep("  -\n"), "at": "a: "+rep("&a "),
	} {
		if len(s) > n { s = s[:n] }
		start := time.Now(); toks := lexer.Tokenize(s); lx := time.Since(start); start = time.Now()
		_, err := Parse("f", []byte(s))
		e := fmt.Sprint(err)
		if d := time.Since(start); d > 100*time.Millisecond { fmt.Println(name, len(toks), lx, len(s), d, strings.SplitN(e, "\n", 2)[0], len(e)) }
	}
}
