package status

import (
	"runtime"
	"runtime/debug"

	"github.com/hotparam/hotparam/internal/figure"
)

// Build identifies the program.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuild returns the build of this program. version is the value set by the linker, or "".
func ReadBuild(version string) Build {
	b := Build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

// BuildFigures are the metrics of the build.
var BuildFigures = []figure.Figure[Build]{
	figure.GaugesBy("build_info", "1; the version is the label.", "version",
		func(b *Build, emit func(string, float64)) { emit(b.Version, 1) }),
}
