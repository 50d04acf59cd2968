package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/config"
)

func TestLint(t *testing.T) {
	bad := write(t, strings.Replace(goodRules, "200/s", "200", 1))
	t.Run("good", func(t *testing.T) {
		r := hotparamCommand(t, "rules", "lint", exampleConfig)
		r.exits(t, exitOK, "good, ", " rules, version ")
		if r.out != "" {
			t.Errorf("stdout: %q, want none", r.out)
		}
	})
	t.Run("good json", func(t *testing.T) {
		r := hotparamCommand(t, "rules", "lint", "--json", exampleConfig)
		r.exits(t, exitOK)
		if strings.TrimSpace(r.out) != "[]" {
			t.Errorf("stdout: %q, want []", r.out)
		}
	})
	t.Run("bad", func(t *testing.T) {
		hotparamCommand(t, "rules", "lint", bad).exits(t, exitConfig, bad+":3:", "hot.rate", "^")
	})
	t.Run("bad json", func(t *testing.T) {
		r := hotparamCommand(t, "rules", "lint", "--json", bad)
		if r.code != exitConfig || r.err != "" {
			t.Errorf("exit code %d, stderr %q, want %d and none", r.code, r.err, exitConfig)
		}
		var problems config.Problems
		decode(t, r.out, &problems)
		if len(problems) != 1 || problems[0].File != bad || problems[0].Line != 3 || problems[0].Column == 0 ||
			!strings.Contains(problems[0].Message, "hot.rate") {
			t.Errorf("problems: %+v, want hot.rate in line 3", problems)
		}
	})
	t.Run("no file", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "none.yaml")
		hotparamCommand(t, "rules", "lint", missing).exits(t, exitConfig, missing, "no such file")
	})
}
