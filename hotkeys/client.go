package hotkeys

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ClientConfig configures a client of Redis. URL is required.
type ClientConfig struct {
	// URL is in one of go-redis's forms; see docs/REDIS.md:
	//
	//	redis://user:password@host:6379/0        one server; rediss:// with TLS
	//	unix://user:password@/path/redis.sock?db=0
	//	redis://host:26379/0?master_name=main&addr=host2:26379&username=u&password=p
	//	                                         Sentinel: the hosts, and the user before
	//	                                         the @, are those of the sentinels
	//	redis://user:password@host:6379?addr=host2:6379
	//	                                         Cluster; cluster=true with one host
	//
	// Further parameters are go-redis's options, such as pool_size and dial_timeout.
	URL string
	// Username, and the password in PasswordFile or in the environment variable
	// PasswordEnv, take precedence over those in the URL. The password is read for each
	// connection, so that it can be changed; a line break at its end is removed.
	Username, PasswordFile, PasswordEnv string
	// SentinelUsername, SentinelPasswordFile and SentinelPasswordEnv are the same for
	// the sentinels, if these require a password. They are read once.
	SentinelUsername, SentinelPasswordFile, SentinelPasswordEnv string
	// CA is the file of the authorities that may sign the server's certificate. If
	// empty, the system's are used. Cert and Key are the files of a client certificate,
	// read for each connection. If empty, there is none. All are PEM.
	CA, Cert, Key string
	// ServerName is the name that the server's certificate must have. Empty means the host of the
	// connection.
	ServerName string
	// Insecure accepts any certificate, so that anyone between client and server can read and
	// change the traffic.
	Insecure bool
}

// dialTimeout bounds the time to make a connection.
const dialTimeout = 500 * time.Millisecond

// NewClient is like [NewClientFrom] with only a URL.
func NewClient(rawURL string) (redis.UniversalClient, error) {
	return NewClientFrom(ClientConfig{URL: rawURL})
}

// NewClientFrom returns a client, which connects on first use and which the caller closes.
// It does not retry, except for redirections in a cluster, and keeps to the deadline of
// each call's context: publisher and watcher have their own retries, and a request must
// not wait. It uses primaries only, since replicas may lag behind. Errors contain no
// password.
func NewClientFrom(c ClientConfig) (redis.UniversalClient, error) {
	client, err := c.client()
	if err != nil {
		return nil, fmt.Errorf("redis %w", err)
	}
	return client, nil
}

func (c ClientConfig) client() (redis.UniversalClient, error) {
	u, err := c.parseURL()
	if err != nil {
		return nil, err
	}
	query := u.Query()
	cluster := false
	if text := query.Get("cluster"); text != "" {
		if cluster, err = strconv.ParseBool(text); err != nil {
			return nil, fmt.Errorf("URL: cluster=%q: want true or false", text)
		}
	}
	query.Del("cluster") // ours, not go-redis's
	u.RawQuery = query.Encode()
	sentinel := query.Get("master_name") != ""
	switch {
	case sentinel && cluster:
		return nil, errors.New("URL: master_name is for Sentinel and cluster=true is for Cluster: remove one of them")
	case !sentinel && (c.SentinelUsername != "" || c.SentinelPasswordFile != "" || c.SentinelPasswordEnv != ""):
		return nil, errors.New("sentinel password: the URL has no master_name, so there is no Sentinel")
	case sentinel:
		return c.failover(u)
	case cluster || query.Has("addr"):
		return c.cluster(u)
	}
	return c.single(u)
}

const wantURL = "want redis://host:6379/0, rediss://user:password@host:6379/0, unix:///path/to/redis.sock, redis://sentinel:26379/0?master_name=main or redis://host:6379?cluster=true"

// parseURL parses the URL. Its errors quote no part of it, because it contains a password. If
// special characters are not escaped, the password can be anywhere in it.
func (c ClientConfig) parseURL() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return nil, errors.New("URL: cannot be read; percent-encode (%XX) all of a password but letters, digits and - . _ ~; " + wantURL)
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return nil, errors.New("URL: unknown scheme; " + wantURL)
	case u.Scheme == "unix" && (u.Host != "" || u.Query().Has("addr") || u.Query().Has("master_name") || u.Query().Has("cluster")):
		return nil, errors.New("URL: want unix:///path/to/redis.sock, as a socket is one server of this machine")
	case u.Fragment != "" || strings.Contains(u.Path, "@") && u.Scheme != "unix" || strayAt(u.Query()):
		return nil, errors.New("URL: an @ or # after the host; percent-encode (%XX) all of a password but letters, digits and - . _ ~")
	}
	return u, nil
}

// strayAt reports whether the query has an @ anywhere but in a user or password.
func strayAt(query url.Values) bool {
	for name, values := range query {
		if name != "username" && name != "password" && strings.Contains(name+strings.Join(values, ""), "@") {
			return true
		}
	}
	return false
}

// single returns a client of one server. Here and below, MaxRetries -1 disables go-redis's retries
// of commands, and DialerRetries 1 those of dialling.
func (c ClientConfig) single(u *url.URL) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("URL: %w; %s", err, wantURL)
	}
	if o.TLSConfig, err = c.tls(o.TLSConfig); err != nil {
		return nil, err
	}
	if o.CredentialsProviderContext, err = c.credentials(o.Username, o.Password); err != nil {
		return nil, err
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.DisableIdentity = true // one exchange less for each connection
	o.DialTimeout = orDialTimeout(o.DialTimeout)
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

func (c ClientConfig) failover(u *url.URL) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("URL: %w", err)
	}
	if o.ReplicaOnly || o.UseDisconnectedReplicas || o.RouteByLatency || o.RouteRandomly {
		return nil, errReplicas
	}
	anyHost(o.TLSConfig)
	if o.TLSConfig, err = c.tls(o.TLSConfig); err != nil {
		return nil, err
	}
	if o.CredentialsProviderContext, err = c.credentials(o.Username, o.Password); err != nil {
		return nil, err
	}
	if err := c.sentinelCredentials(o); err != nil {
		return nil, err
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.DisableIdentity = true // one exchange less for each connection
	o.DialTimeout = orDialTimeout(o.DialTimeout)
	// go-redis itself disables maintenance notifications with Sentinel.
	return redis.NewFailoverClient(o), nil
}

func (c ClientConfig) cluster(u *url.URL) (redis.UniversalClient, error) {
	if db := strings.Trim(u.Path, "/"); db != "" && db != "0" || u.Query().Has("db") {
		return nil, errors.New("URL: a cluster has database 0 only")
	}
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("URL: %w", err)
	}
	if o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
		return nil, errReplicas
	}
	anyHost(o.TLSConfig)
	if o.TLSConfig, err = c.tls(o.TLSConfig); err != nil {
		return nil, err
	}
	if o.CredentialsProviderContext, err = c.credentials(o.Username, o.Password); err != nil {
		return nil, err
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.DisableIdentity = true // one exchange less for each connection
	o.DialTimeout = orDialTimeout(o.DialTimeout)
	// All commands have a key, so they need no routing policies. To have these, go-redis would call
	// COMMAND, which takes a right and an exchange.
	o.DisableRoutingPolicies = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return newCluster(o), nil
}

var errReplicas = errors.New("URL: options that read from replicas are not supported, since replicas may lag behind")

func orDialTimeout(d time.Duration) time.Duration {
	if d == 0 {
		return dialTimeout
	}
	return d
}
