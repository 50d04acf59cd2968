package real

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Postgres starts a PostgreSQL for the test, with an empty database, and returns when it accepts
// connections, by a Unix socket alone. uri names it for clients. settings are more of its
// settings, such as "shared_buffers=1GB". It uses the programs of Debian's package, or those of
// the PATH. Without them the test is skipped (see the package).
//
// Nothing is synced to the disk, and a query uses one process.
func Postgres(tb testing.TB, settings ...string) (uri string) {
	tb.Helper()
	programs := postgresPrograms(tb)
	dir, owner := postgresDirectory(tb)
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: owner}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if text, err := command("initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync").CombinedOutput(); err != nil {
		tb.Fatalf("real: initdb: %v\n%s", err, text)
	}
	args := []string{"-D", data, "-k", dir}
	for _, setting := range slices.Concat([]string{"listen_addresses=", "fsync=off", "max_parallel_workers_per_gather=0"}, settings) {
		args = append(args, "-c", setting)
	}
	p := testenv.Start(tb, command("postgres", args...))
	tb.Cleanup(func() { p.Signal(syscall.SIGINT) }) // it ends without waiting for its clients
	p.WaitFor("database system is ready to accept connections")
	return "postgres:///postgres?user=postgres&host=" + dir
}

// postgresPrograms returns the directory of PostgreSQL's programs, of the latest version that is
// installed.
func postgresPrograms(tb testing.TB) string {
	tb.Helper()
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is valid
	if path, err := exec.LookPath("postgres"); len(found) == 0 && err == nil {
		found = []string{path}
	}
	if len(found) == 0 {
		testenv.Unavailable(tb, "no PostgreSQL (Debian: apt-get install --no-install-recommends postgresql)")
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
}

// postgresDirectory returns a new directory and its owner. PostgreSQL refuses to run as root. A
// nil owner stands for the present user.
func postgresDirectory(tb testing.TB) (dir string, owner *syscall.Credential) {
	tb.Helper()
	// tb.TempDir is below a directory that only the present user can enter.
	dir, err := os.MkdirTemp("", "postgres-")
	if err != nil {
		tb.Fatalf("real: %v", err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if os.Getuid() != 0 {
		return dir, nil
	}
	owner, err = postgresUser()
	if err == nil {
		err = os.Chown(dir, int(owner.Uid), int(owner.Gid))
	}
	if err != nil {
		tb.Fatalf("real: PostgreSQL does not run as root: %v", err)
	}
	return dir, owner
}

// postgresUser returns the user that the package creates, or nobody.
func postgresUser() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
