package hotkeys

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestClientForms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("from file\n"), 0o600))
	t.Setenv("TEST_REDIS_PASSWORD", "from env")
	type want struct {
		addr, user, password string
		db                   int
		tls, sentinel        bool
		cluster              []string
	}
	for name, test := range map[string]struct {
		config ClientConfig
		want   want
	}{
		"one":       {ClientConfig{URL: "redis://host"}, want{addr: "host:6379"}},
		"db":        {ClientConfig{URL: "redis://u:p@host:1/3"}, want{addr: "host:1", user: "u", password: "p", db: 3}},
		"TLS":       {ClientConfig{URL: "rediss://:p%40@host"}, want{addr: "host:6379", password: "p@", tls: true}},
		"socket":    {ClientConfig{URL: "unix://u:p@/run/redis@1.sock?db=2"}, want{addr: "/run/redis@1.sock", user: "u", password: "p", db: 2}},
		"file":      {ClientConfig{URL: "redis://u:p@host", PasswordFile: file}, want{addr: "host:6379", user: "u", password: "from file"}},
		"env":       {ClientConfig{URL: "redis://u:p@host", Username: "v", PasswordEnv: "TEST_REDIS_PASSWORD"}, want{addr: "host:6379", user: "v", password: "from env"}},
		"sentinel":  {ClientConfig{URL: "redis://su:sp@host:26379/4?master_name=main&addr=b:26379&username=u&password=p@"}, want{addr: "FailoverClient", user: "u", password: "p@", db: 4, sentinel: true}},
		"sentinel!": {ClientConfig{URL: "rediss://host?master_name=main", Username: "u", PasswordFile: file, SentinelUsername: "su", SentinelPasswordEnv: "TEST_REDIS_PASSWORD"}, want{addr: "FailoverClient", user: "u", password: "from file", tls: true, sentinel: true}},
		"cluster":   {ClientConfig{URL: "redis://u:p@host:1?addr=b:2&addr=c:3"}, want{user: "u", password: "p", cluster: []string{"host:1", "b:2", "c:3"}}},
		"cluster 1": {ClientConfig{URL: "rediss://host:1/0?cluster=true", PasswordFile: file}, want{password: "from file", tls: true, cluster: []string{"host:1"}}},
		"no":        {ClientConfig{URL: "redis://host:1?cluster=false"}, want{addr: "host:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := NewClientFrom(test.config)
			must(t, err)
			defer client.Close()
			var got want
			var retries int
			var own bool
			var dial time.Duration
			var config *tls.Config
			switch c := client.(type) {
			case *redis.ClusterClient:
				o := c.Options()
				got.cluster, config, retries, own, dial = o.Addrs, o.TLSConfig, o.MaxRetries, o.ContextTimeoutEnabled, o.DialTimeout
				got.user, got.password = o.Username, o.Password
				if p := o.CredentialsProviderContext; p != nil {
					got.user, got.password, err = p(t.Context())
				}
				if o.MaxRedirects < 1 || o.ClusterStateReloadInterval > time.Second {
					t.Errorf("follows %d redirections, reloads after %v", o.MaxRedirects, o.ClusterStateReloadInterval)
				}
				retries++ // -1 is kept as it is there
			case *redis.Client:
				o := c.Options()
				got.addr, got.db, config, retries, own, dial = o.Addr, o.DB, o.TLSConfig, o.MaxRetries, o.ContextTimeoutEnabled, o.DialTimeout
				got.user, got.password = o.Username, o.Password
				if p := o.CredentialsProviderContext; p != nil {
					got.user, got.password, err = p(t.Context())
				}
				got.sentinel = o.Addr == "FailoverClient"
			}
			must(t, err)
			got.tls = config != nil
			if len(got.cluster) != len(test.want.cluster) || strings.Join(got.cluster, ",") != strings.Join(test.want.cluster, ",") {
				t.Errorf("cluster %v, want %v", got.cluster, test.want.cluster)
			}
			got.cluster, test.want.cluster = nil, nil
			if got.addr != test.want.addr || got.user != test.want.user || got.password != test.want.password || got.db != test.want.db || got.tls != test.want.tls || got.sentinel != test.want.sentinel {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if retries != 0 || !own || dial != dialTimeout {
				t.Errorf("retries %d, deadlines %v, dial %v", retries, own, dial)
			}
		})
	}
}

func TestClientErrors(t *testing.T) {
	files := testenv.Certificates(t)
	empty := filepath.Join(t.TempDir(), "empty")
	must(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for name, test := range map[string]struct {
		config ClientConfig
		want   string
	}{
		"no URL":             {ClientConfig{}, "redis URL: unknown scheme; want redis://host"},
		"no scheme":          {ClientConfig{URL: "localhost:6379"}, "redis URL: unknown scheme; want redis://host"},
		"HTTP":               {ClientConfig{URL: "http://localhost"}, "redis URL: unknown scheme; want redis://host"},
		"bad escape":         {ClientConfig{URL: "redis://:hunter2@%zz"}, "redis URL: cannot be read"},
		"bad port":           {ClientConfig{URL: "redis://:hunter2@localhost:port"}, "redis URL: cannot be read"},
		"bad database":       {ClientConfig{URL: "redis://:hunter2@localhost/db"}, "want redis://host"},
		"unknown option":     {ClientConfig{URL: "redis://:hunter2@localhost?poolsize=3"}, "poolsize"},
		"password as port":   {ClientConfig{URL: "redis://user:12/hunter2@localhost:6379"}, "%XX"},
		"password as query":  {ClientConfig{URL: "redis://user:12?hunter2@localhost:6379"}, "%XX"},
		"password as hash":   {ClientConfig{URL: "redis://user:12#hunter2@localhost:6379"}, "%XX"},
		"password as host":   {ClientConfig{URL: "redis://user:hunter2/@localhost:6379"}, "%XX"},
		"password as option": {ClientConfig{URL: "redis://user:12?pool_size=hunter2@localhost:6379"}, "%XX"},
		"socket with a host": {ClientConfig{URL: "unix://localhost/redis.sock"}, "unix:///"},
		"socket of cluster":  {ClientConfig{URL: "unix:///redis.sock?cluster=true"}, "unix:///"},
		"cluster?":           {ClientConfig{URL: "redis://localhost?cluster=3"}, "cluster="},
		"both":               {ClientConfig{URL: "redis://localhost?cluster=true&master_name=main"}, "master_name"},
		"cluster database":   {ClientConfig{URL: "redis://localhost/3?cluster=true"}, "database 0"},
		"cluster db":         {ClientConfig{URL: "redis://localhost?cluster=true&db=3"}, "database 0"},
		"cluster address":    {ClientConfig{URL: "redis://localhost?addr=here"}, "here"},
		"from replicas":      {ClientConfig{URL: "redis://localhost?cluster=true&read_only=true"}, "replicas"},
		"by latency":         {ClientConfig{URL: "redis://localhost?master_name=main&route_by_latency=true"}, "replicas"},
		"sentinel option":    {ClientConfig{URL: "redis://localhost?master_name=main&nonsense=1"}, "nonsense"},
		"no sentinel":        {ClientConfig{URL: "redis://localhost", SentinelPasswordFile: "x"}, "master_name"},
		"sentinel password":  {ClientConfig{URL: "redis://localhost?master_name=main", SentinelPasswordFile: "/nowhere"}, "/nowhere"},
		"no file":            {ClientConfig{URL: "redis://localhost", PasswordFile: "/nowhere"}, "redis password: open /nowhere"},
		"empty file":         {ClientConfig{URL: "redis://localhost?cluster=true", PasswordFile: empty}, "is empty"},
		"empty env":          {ClientConfig{URL: "redis://localhost?master_name=main", PasswordEnv: "TEST_NOWHERE"}, "TEST_NOWHERE"},
		"two passwords":      {ClientConfig{URL: "redis://localhost", PasswordFile: empty, PasswordEnv: "X"}, "want one"},
		"TLS without":        {ClientConfig{URL: "redis://localhost", CA: files.CA}, "rediss://"},
		"TLS on a socket":    {ClientConfig{URL: "unix:///redis.sock", Insecure: true}, "rediss://"},
		"no CA":              {ClientConfig{URL: "rediss://localhost", CA: "/nowhere"}, "redis CA: open /nowhere"},
		"CA of nothing":      {ClientConfig{URL: "rediss://localhost", CA: empty}, "no certificate"},
		"key without":        {ClientConfig{URL: "rediss://localhost?cluster=true", Key: files.ClientKey}, "go together"},
		"not its key":        {ClientConfig{URL: "rediss://localhost?master_name=main", Cert: files.ClientCert, Key: files.ServerKey}, "client certificate"},
	} {
		client, err := NewClientFrom(test.config)
		if err == nil {
			client.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "hunter2") || !strings.HasPrefix(text, "redis ") {
			t.Errorf("%s: %v, want it to say %q, and no password", name, err, test.want)
		}
	}
}

// No error shows the text in a password's place, however malformed the URL is.
func FuzzClientErrors(f *testing.F) {
	for _, password := range []string{"hunter22", "12/hunter22", "12?hunter22", "1#hunter22", "%zzhunter22", "a:b@hunter22", "1?pool_size=hunter22"} {
		f.Add(password, "?master_name=main")
		f.Add(password, "?cluster=true")
		f.Add(password, "/x")
	}
	f.Fuzz(func(t *testing.T, password, rest string) {
		const mark = "hunter22"
		if !strings.Contains(password, mark) || strings.Contains(rest, mark) {
			return
		}
		client, err := NewClient("redis://user:" + password + "@localhost:6379" + rest)
		switch {
		case err == nil:
			client.Close()
		case strings.Contains(err.Error(), mark):
			t.Errorf("password %q, then %q: %v", password, rest, err)
		}
	})
}

// A password is read for each connection. If reading fails, the error names the file.
func TestPasswordIsTakenUp(t *testing.T) {
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	file := filepath.Join(t.TempDir(), "password")
	setPassword := func(password string) {
		must(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "reset", "on", ">"+password, "+ping").Err())
		must(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
		must(t, admin.Do(t.Context(), "CLIENT", "KILL", "USER", "reader").Err())
	}
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader").Err())
	setPassword("one")
	client, err := NewClientFrom(ClientConfig{URL: server.URL(), Username: "reader", PasswordFile: file})
	must(t, err)
	defer client.Close()
	must(t, client.Ping(t.Context()).Err())
	setPassword("two")
	if err := client.Ping(t.Context()).Err(); err != nil { // the connection was closed
		must(t, client.Ping(t.Context()).Err())
	}
	must(t, os.WriteFile(file, []byte("hunter2"), 0o600))
	must(t, admin.Do(t.Context(), "CLIENT", "KILL", "USER", "reader").Err())
	for range 2 {
		err = client.Ping(t.Context()).Err()
	}
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("wrong password: %v", err)
	}
	must(t, os.Remove(file))
	if err := client.Ping(t.Context()).Err(); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), file) {
		t.Errorf("no file: %v", err)
	}
}

func TestClientTLS(t *testing.T) {
	files := testenv.Certificates(t)
	server := testenv.RedisTLS(t, files)
	strangers := testenv.Certificates(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	renew := func(f testenv.CertificateFiles) {
		for to, from := range map[string]string{cert: f.ClientCert, key: f.ClientKey} {
			text, err := os.ReadFile(from)
			must(t, err)
			must(t, os.WriteFile(to, text, 0o600))
		}
	}
	renew(files)
	ping := func(c ClientConfig) error {
		c.URL, c.Cert, c.Key = server.URL(), cert, key
		client, err := NewClientFrom(c)
		must(t, err)
		defer client.Close()
		return client.Ping(t.Context()).Err()
	}
	must(t, ping(ClientConfig{CA: files.CA}))
	must(t, ping(ClientConfig{CA: files.CA, ServerName: "localhost"}))
	must(t, ping(ClientConfig{Insecure: true}))
	if err := ping(ClientConfig{}); err == nil {
		t.Error("an unknown authority was trusted")
	}
	if err := ping(ClientConfig{CA: strangers.CA}); err == nil {
		t.Error("another authority was trusted")
	}
	if err := ping(ClientConfig{CA: files.CA, ServerName: "elsewhere"}); err == nil {
		t.Error("a certificate for another name was taken")
	}
	renew(strangers)
	if err := ping(ClientConfig{CA: files.CA}); err == nil {
		t.Error("the server took a client whose certificate it does not know")
	}
}
