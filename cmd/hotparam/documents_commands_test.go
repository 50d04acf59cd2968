package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreign are the commands of other programs in shell blocks, and how often they occur. Only their
// syntax is checked.
var foreign = map[string]int{
	"apt-get": 1, "cp": 2, "curl": 16, "cut": 1, "docker": 10, "echo": 3, "go": 7, "grep": 2, "helm": 3, "install": 5, "jq": 1, "kafka-acls.sh": 3, "kafka-topics.sh": 2, "kill": 1, "kubectl": 6, "nc": 1, "node": 1, "npm": 1,
	"openssl": 4, "printf": 2, "redis-cli": 5, "redis-server": 2, "runuser": 1, "sed": 2, "sleep": 1, "systemctl": 6, "tail": 1, "umask": 2, "uniq": 2, "varnishd": 1,
}

// Commands of hotparam in shell blocks use subcommands, flags and arguments that exist, and every
// block has valid syntax.
func TestDocumentedCommandsAreReal(t *testing.T) {
	others := make(map[string]int)
	ours := 0
	for _, s := range checked(t, "sh") {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", s.text).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", s, err, out)
		}
		for _, words := range shellCommands(s.text) {
			at := slices.IndexFunc(words, func(w string) bool { return w == "hotparam" || w == "./cmd/hotparam" })
			switch {
			case words[0] == "make":
				target(t, s, words[1:])
			case at < 0:
				others[words[0]]++
			default:
				ours++
				command(t, s, words[at+1:], true)
			}
		}
	}
	if ours < 10 {
		t.Errorf("%d commands of ours", ours)
	}
	if !maps.Equal(others, foreign) {
		t.Errorf("commands of others: %#v\nlisted are %#v", others, foreign)
	}
}

// Commands in sentences and in indented lines exist, with their flags.
func TestDocumentsNameRealCommands(t *testing.T) {
	inline := regexp.MustCompile("(?m)(?:`|^    )((?:hotparam|make) [^`\n]+)(?:`|$)")
	n := 0
	for path, text := range documents(t) {
		for _, at := range inline.FindAllStringSubmatchIndex(text, -1) {
			n++
			s := snippet{path: path, line: 1 + strings.Count(text[:at[0]], "\n")}
			for _, words := range shellCommands(text[at[2]:at[3]]) {
				switch words[0] {
				case "make":
					target(t, s, words[1:])
				case "hotparam":
					command(t, s, words[1:], false)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d commands", n)
	}
}

// command parses a hotparam command line as main does, without running it. A whole one must have
// all arguments, too.
func command(t *testing.T, s snippet, args []string, whole bool) {
	t.Helper()
	if at := slices.Index(args, ">"); at >= 0 { // a redirection to a file follows
		args = args[:at]
	}
	root := newRoot(streams{})
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil && (whole || cmd.HasSubCommands() && cmd.Flags().NArg() > 0) {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil && !cmd.Runnable() {
		err = fmt.Errorf("no such command")
	}
	if err != nil {
		t.Errorf("%v: hotparam %s: %v", s, strings.Join(args, " "), err)
	}
}

// target checks that the targets of make exist.
func target(t *testing.T, s snippet, words []string) {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		if !strings.Contains(word, "=") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(word)+`:`).Match(makefile) {
			t.Errorf("%v: make has no target %s", s, word)
		}
	}
}

// shellWord matches a comment, the end of a command, or a part of a word.
var shellWord = regexp.MustCompile(`(?m)(\s#.*$|^#.*$)|(\\\n)|(\n|&&|\|\||[|;&()]|\$\()|('[^']*'|"(?:[^"\\]|\\.)*"|[^\s'"|;&()])+`)

// shellCommands returns the words of each command. It supports the parts of the shell's syntax
// that the documents use.
func shellCommands(text string) (commands [][]string) {
	var words []string
	end := func() {
		for len(words) > 0 && slices.Contains([]string{"while", "do", "done", "for", "then", "fi", "if"}, words[0]) {
			if words = words[1:]; len(words) > 1 && words[1] == "in" {
				words = nil // the names of a for
			}
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for _, found := range shellWord.FindAllStringSubmatch(text, -1) {
		switch {
		case found[1] != "" || found[2] != "":
		case found[3] != "":
			end()
		default:
			words = append(words, strings.Trim(found[0], `'"`))
		}
	}
	end()
	return commands
}

func TestShellCommands(t *testing.T) {
	const text = `while sleep 0.05; do
  for port in 1 2; do curl "localhost:$port/x?q=a|b"; done
done
tail -f log | hotparam replay --by q - # what; is hot
printf 'a;b|c' \
  x && make test
docker kill "$(docker ps | head -n 1)" &
(umask 077)`
	want := [][]string{
		{"sleep", "0.05"}, {"curl", "localhost:$port/x?q=a|b"}, {"tail", "-f", "log"}, {"hotparam", "replay", "--by", "q", "-"},
		{"printf", "a;b|c", "x"}, {"make", "test"}, {"docker", "kill", "$(docker ps | head -n 1)"}, {"umask", "077"},
	}
	if got := shellCommands(text); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
