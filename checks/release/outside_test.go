package release

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// longest bounds the wait for an event that should come soon.
const longest = 30 * time.Second

// documented is a document that shows how to begin, and what its lines of Go assume.
type documented struct {
	name, heading string // the lines of Go are the first below the heading
	imports       string
	before        string // lines that declare its variables
	rules         string // a file of rules, a document and the heading of its rules, or empty for those below the heading
	ask           func(addr, value string) (*http.Request, error)
	h2c           bool
}

// login returns a function that makes requests to log in by a form.
func login(path string) func(addr, user string) (*http.Request, error) {
	return func(addr, user string) (*http.Request, error) {
		req, err := http.NewRequest(http.MethodPost, "http://"+addr+path, strings.NewReader("password=x&user="+user))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return req, err
	}
}

var beginnings = []documented{
	{
		name: "README.md", heading: "## Attach it to your API", rules: "README.md\n## Write rules",
		before: `mux := http.NewServeMux()
			mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.FormValue("q")) })`,
		ask: func(addr, value string) (*http.Request, error) {
			return http.NewRequest(http.MethodGet, "http://"+addr+"/search?q="+value, http.NoBody)
		},
	},
	{
		name: "README.md", heading: "## Attach it to your API", rules: "docs/RECIPES.md\n## Login forms",
		before: `mux := http.NewServeMux()
			mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "", known(r.FormValue("user"))) })`,
		ask: login("/login"),
	},
	{
		name: "adapters/chi/README.md", heading: "# chi", imports: `"github.com/go-chi/chi/v5"; hpchi "github.com/hotparam/hotparam/adapters/chi"`,
		before: `login := func(w http.ResponseWriter, r *http.Request) { http.Error(w, "", known(r.FormValue("user"))) }`,
		ask:    login("/shops/toys/login"),
	},
	{
		name: "adapters/gin/README.md", heading: "# gin", imports: `"github.com/gin-gonic/gin"; hpgin "github.com/hotparam/hotparam/adapters/gin"`,
		before: `login := func(c *gin.Context) { c.Status(known(c.PostForm("user"))) }`,
		ask:    login("/shops/toys/login"),
	},
	{
		name: "adapters/echo/README.md", heading: "# Echo v5", imports: `"github.com/labstack/echo/v5"; hpecho "github.com/hotparam/hotparam/adapters/echo"`,
		before: `login := func(c *echo.Context) error { return c.NoContent(known(c.FormValue("user"))) }`,
		ask:    login("/shops/toys/login"),
	},
	{
		name: "adapters/fiber/README.md", heading: "# Fiber v3", imports: `"github.com/gofiber/fiber/v3"; hpfiber "github.com/hotparam/hotparam/adapters/fiber"`,
		before: `login := func(c fiber.Ctx) error { return c.SendStatus(known(c.FormValue("user"))) }`,
		ask:    login("/shops/toys/login"),
	},
	{
		name: "adapters/grpc/README.md", heading: "# gRPC", rules: "adapters/grpc/example/hotparam.yaml", h2c: true, imports: `"net"; "google.golang.org/grpc"; "google.golang.org/grpc/health"; pb "google.golang.org/grpc/health/grpc_health_v1"; hpgrpc "github.com/hotparam/hotparam/adapters/grpc"`,
		before: `var shop struct { RegisterSearchServer func(grpc.ServiceRegistrar, pb.HealthServer) }
			shop.RegisterSearchServer = pb.RegisterHealthServer
			searches := health.NewServer()
			listener, err := net.Listen("tcp", addr)`,
		ask: func(addr, value string) (*http.Request, error) {
			message := append([]byte{'\n', byte(len(value))}, value...) // of protobuf: the first field
			frame := append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
			req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/grpc.health.v1.Health/Check", bytes.NewReader(frame))
			if err == nil {
				req.Header.Set("Content-Type", "application/grpc")
				req.Header.Set("Te", "trailers")
			}
			return req, err
		},
	},
	{
		name: "adapters/connect/README.md", heading: "# connect", rules: "adapters/connect/example/hotparam.yaml", imports: `"connectrpc.com/connect"; pb "google.golang.org/protobuf/types/known/wrapperspb"; hpconnect "github.com/hotparam/hotparam/adapters/connect"`,
		before: `var shopconnect struct { NewSearchHandler func(func(context.Context, *pb.StringValue) (*pb.StringValue, error), ...connect.HandlerOption) (string, http.Handler) }
			shopconnect.NewSearchHandler = func(find func(context.Context, *pb.StringValue) (*pb.StringValue, error), opts ...connect.HandlerOption) (string, http.Handler) {
				return "/shop.Search/", connect.NewUnaryHandlerSimple("/shop.Search/Find", find, opts...)
			}
			searches := func(_ context.Context, req *pb.StringValue) (*pb.StringValue, error) { return req, nil }`,
		ask: func(addr, value string) (*http.Request, error) {
			req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/shop.Search/Find", strings.NewReader(strconv.Quote(value)))
			if err == nil {
				req.Header.Set("Content-Type", "application/json")
			}
			return req, err
		},
	},
}

// statusOf returns the status of an answer. A gRPC server sends its own in a trailer.
func statusOf(res *http.Response) int {
	_, _ = io.Copy(io.Discard, res.Body)
	if res.Trailer.Get("Grpc-Status")+res.Header.Get("Grpc-Status") == "8" { // RESOURCE_EXHAUSTED
		return http.StatusTooManyRequests
	}
	return res.StatusCode
}

// A user who follows a README in a new module gets, from the files of a release, a program that
// limits a hot key.
func TestInstalledOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("installs modules and builds programs")
	}
	proxy, modules := build(t)
	env := outside(t, proxy)
	tried := make(map[string]bool)
	for _, d := range beginnings {
		tried[d.name] = true
	}
	if len(modules) != len(tried) {
		t.Errorf("%d modules are released, %d are tried", len(modules), len(tried))
	}
	for _, d := range beginnings {
		t.Run(d.name, func(t *testing.T) { d.try(t, env) })
	}
}

// outside returns the environment of a user who has never had this module. Other modules come
// from the cache of the user who runs the test, if they are there.
func outside(t *testing.T, proxy string) []string {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(cache), "\n")
	known, others, flags := lines[0], lines[1], lines[2]
	return append(os.Environ(),
		"GOWORK=off",
		"GOSUMDB=off",
		"GOMODCACHE="+t.TempDir(),
		"GOFLAGS="+flags+" -mod=mod -modcacherw -trimpath", // so that packages compiled in another directory are used
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(filepath.Join(known, "cache", "download"))+","+others,
	)
}

func (d *documented) try(t *testing.T, env []string) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		testenv.WriteFile(t, filepath.Join(dir, name), text)
	}
	lines := block(t, d.name, d.heading, "go")
	write("main.go", fmt.Sprintf(`package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/hotparam/hotparam"
	%s
)

func main() {
	ctx, addr := context.Background(), os.Args[1]
	%s
%s}

// known is the status of a login: a handler that does not see the form does not know the user.
func known(user string) int {
	if user == "" {
		return http.StatusUnauthorized
	}
	return http.StatusOK
}

var (
	_ = fmt.Sprint
	_ = known
)
`, d.imports, d.before, lines))
	write("hotparam.yaml", d.file(t))
	install := []string{"go", "get", "github.com/hotparam/hotparam"}
	if d.name != "README.md" {
		install = strings.Fields(block(t, d.name, d.heading, "sh"))
	}
	run("go", "mod", "init", "example.org/shop")
	run(install...)
	run("go", "build", "-o", "shop", ".")
	d.limits(t, dir)
}

// file returns the file of rules.
func (d *documented) file(t *testing.T) string {
	t.Helper()
	if document, heading, found := strings.Cut(d.rules, "\n"); found {
		return block(t, document, heading, "yaml")
	}
	name := d.rules
	if name == "" {
		name = path.Join(path.Dir(d.name), "example/hotparam.yaml")
	}
	text := testenv.ReadFile(t, filepath.Join(repository, filepath.FromSlash(name)))
	if d.rules == "" && block(t, d.name, d.heading, "yaml") != text {
		t.Errorf("%s has other rules than %s", d.name, name)
	}
	return text
}

// limits runs the program and waits until it limits a hot value, and no other.
func (d *documented) limits(t *testing.T, dir string) {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	shop := exec.CommandContext(t.Context(), filepath.Join(dir, "shop"), addr)
	shop.Dir = dir
	log := new(testenv.LogBuffer)
	shop.Stdout, shop.Stderr = log, log
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shop.Process.Kill()
		_ = shop.Wait()
	})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!d.h2c)
	transport.Protocols.SetUnencryptedHTTP2(d.h2c)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: longest}
	get := func(value string) (status int) {
		req, err := d.ask(addr, value)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req.WithContext(t.Context()))
		if err != nil {
			return 0 // it is not up yet
		}
		defer res.Body.Close()
		return statusOf(res)
	}
	end := time.Now().Add(longest)
	for get("phone") != http.StatusTooManyRequests {
		if time.Now().After(end) {
			t.Fatalf("no request for a hot key was refused within %v; the log:\n%s", longest, log)
		}
	}
	if status := get("boat"); status != http.StatusOK {
		t.Errorf("a key that is not hot: status %d", status)
	}
	if strings.Contains(log.String(), "connection pool") {
		t.Errorf("go-redis logs each try:\n%s", log)
	}
}

// block returns the first block of a language below a heading of the document.
func block(t *testing.T, document, heading, language string) string {
	t.Helper()
	text := testenv.ReadFile(t, filepath.Join(repository, filepath.FromSlash(document)))
	_, below, found := strings.Cut("\n"+text, "\n"+heading+"\n")
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```\n").FindStringSubmatch(below)
	if !found || block == nil {
		t.Fatalf("%s has no %s block below %q", document, language, heading)
	}
	return block[1]
}
