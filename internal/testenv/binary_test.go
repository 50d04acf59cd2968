package testenv

import (
	"os/exec"
	"testing"
)

func TestBinaryIsBuiltOnceAndRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	path := Binary(t)
	if again := Binary(t); again != path {
		t.Errorf("second call: %s, first: %s", again, path)
	}
	p := Start(t, exec.Command(path, "version"))
	if code := p.Wait(); code != 0 {
		t.Errorf("hotparam version: exit code %d, stderr %q", code, p.Stderr())
	}
}
