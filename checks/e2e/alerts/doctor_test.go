package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// finding is what "hotparam doctor --json" prints of one.
type finding struct{ Check, Status, What, Mend string }

// askDoctor runs hotparam doctor with the operator's file of the stack. It returns the problems
// in the order in which doctor reports them.
func (s *alertStack) askDoctor() (problems []finding) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, testenv.Binary(s.t), "doctor", "--json", "--config", s.files[2]).Output()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		s.t.Fatalf("%s: doctor: %v", s.name, err)
	}
	var found []finding
	if err := json.Unmarshal(output, &found); err != nil {
		s.t.Fatalf("%s: doctor: exit code %d, %v in %s", s.name, code, err, output)
	}
	for _, f := range found {
		if f.Status == "problem" {
			problems = append(problems, f)
			if f.Mend == "" {
				s.t.Errorf("%s: doctor does not say how to mend: %s", s.name, f.What)
			}
		}
	}
	if want := min(len(problems), 1); code != want {
		s.t.Errorf("%s: doctor has exit code %d, and %d problems", s.name, code, len(problems))
	}
	return problems
}

// checksOf returns the checks that found problems, each once.
func checksOf(problems []finding) []string {
	var checks []string
	for _, f := range problems {
		checks = append(checks, f.Check)
	}
	slices.Sort(checks)
	return slices.Compact(checks)
}
