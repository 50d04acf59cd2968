package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is an instruction of a Dockerfile, such as RUN and its command.
type instruction struct{ name, text string }

// readDockerfile returns the instructions of each stage, by its name.
func readDockerfile(t *testing.T) map[string][]instruction {
	t.Helper()
	data, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(data), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	known := []string{"FROM", "WORKDIR", "ENV", "COPY", "ARG", "RUN", "USER", "LABEL", "EXPOSE", "ENTRYPOINT", "CMD"}
	stages, stage := make(map[string][]instruction), ""
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		if !slices.Contains(known, name) {
			t.Errorf("Dockerfile: unknown instruction %q", line)
		}
		if name == "FROM" {
			fields := strings.Fields(rest)
			stage = fields[len(fields)-1]
			if base := fields[len(fields)-3]; len(stages[base]) > 0 { // it builds on another stage
				stages[stage] = slices.Clone(stages[base])
			}
		}
		stages[stage] = append(stages[stage], instruction{name, strings.TrimSpace(rest)})
	}
	return stages
}

// Images contain a program that knows its version, have labels, and run as a numeric user, so that
// Kubernetes can see that it is not root.
func TestDockerfile(t *testing.T) {
	stages := readDockerfile(t)
	for _, name := range []string{"hotparam", "api"} {
		last := make(map[string]string)
		labels := ""
		for _, i := range stages[name] {
			last[i.name] = i.text
			if i.name == "LABEL" {
				labels += i.text + " "
			}
		}
		if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(last["USER"]) {
			t.Errorf("%s runs as %q", name, last["USER"])
		}
		if last["ENTRYPOINT"] != `["/bin/`+name+`"]` {
			t.Errorf("%s: ENTRYPOINT %s", name, last["ENTRYPOINT"])
		}
		for _, label := range []string{"title", "version", "revision", "source", "licenses"} {
			if !strings.Contains(labels, "org.opencontainers.image."+label+"=") {
				t.Errorf("%s has no label %s", name, label)
			}
		}
	}
}

// The go command accepts the line that builds the programs, and would build both, with the version
// where `hotparam version` looks for it.
func TestDockerfileBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command: left out with -short")
	}
	t.Parallel()
	line := ""
	for _, i := range readDockerfile(t)["build"] {
		if i.name == "RUN" && strings.Contains(i.text, "go build") {
			line = i.text
		}
	}
	if !strings.Contains(line, "CGO_ENABLED=0") || !strings.Contains(line, " -trimpath -tags=lean,grpcnotrace ") {
		t.Fatalf("RUN %s", line)
	}
	line = strings.ReplaceAll(strings.Replace(line, "go build ", "go list -f {{.Name}} ", 1), "-o /out/ ", "")
	command := exec.CommandContext(t.Context(), "sh", "-c", line)
	command.Dir = ".."
	command.Env = append(os.Environ(), "GOWORK=off", "VERSION=v1.2.3", "TARGETOS=linux", "TARGETARCH=arm64")
	if output, err := command.CombinedOutput(); err != nil || string(output) != "main\nmain\n" {
		t.Errorf("%s: %v\n%s", line, err, output)
	}
	source, err := os.ReadFile(filepath.Join("..", "cmd", "hotparam", "version.go"))
	if err != nil || !strings.Contains(string(source), "\nvar version = \"\"\n") {
		t.Errorf("the linker finds no variable main.version: %v", err)
	}
}
