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

// ClientConfig is how to reach Redis.
type ClientConfig struct {
	// URL is in any of go-redis's forms; see docs/REDIS.md:
	//
	//	redis://user:password@host:6379/0        one server; rediss:// with TLS
	//	unix://user:password@/path/redis.sock?db=0
	//	redis://host:26379/0?master_name=main&addr=host2:26379&username=u&password=p
	//	                                         Sentinel: hosts, and the user before
	//	                                         the @, are the sentinels'
	//	redis://user:password@host:6379?addr=host2:6379
	//	                                         Cluster; cluster=true with one host
	//
	// Its further parameters are go-redis's options, as pool_size and
	// dial_timeout. Required.
	URL string
	// Username, and the password in PasswordFile or in the environment variable
	// PasswordEnv, go before what the URL says. The password is read for each
	// connection, so that a new one is taken up; a line break at its end is cut.
	Username, PasswordFile, PasswordEnv string
	// SentinelUsername, SentinelPasswordFile and SentinelPasswordEnv are the
	// same for the sentinels, where these want a password; read once.
	SentinelUsername, SentinelPasswordFile, SentinelPasswordEnv string
	// CA is the file of the authorities that may sign the server's certificate;
	// empty: the system's. Cert and Key are the files of the client's
	// certificate, read for each connection; empty: none. All PEM.
	CA, Cert, Key string
	// ServerName is what the server's certificate must be for; empty: the host
	// that is connected to.
	ServerName string
	// Insecure takes any certificate: whoever is on the way may read and write.
	Insecure bool
}

// dialTimeout is how long a connection may take to come up.
const dialTimeout = 500 * time.Millisecond

// NewClient is [NewClientFrom] with nothing but a URL.
func NewClient(rawURL string) (redis.UniversalClient, error) {
	return NewClientFrom(ClientConfig{URL: rawURL})
}

// NewClientFrom gives a client. It never retries by itself, but for a redirection
// in a cluster, and keeps to the deadline of each call's context: the callers
// here have retries of their own, and a request must not wait. It reads and
// writes primaries only. It connects on first use; the caller closes it. Errors
// hold no password.
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
		return nil, errors.New("URL: master_name is for Sentinel, and cluster=true is not")
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

// parseURL reads the URL. What is wrong with it is told without it: it holds a
// password, perhaps in a place where nobody looks for one, as special characters
// in it must be escaped and are not always.
func (c ClientConfig) parseURL() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return nil, errors.New("URL: cannot be read; in a password all but letters, digits and - . _ ~ must be %XX; " + wantURL)
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return nil, errors.New("URL: unknown scheme; " + wantURL)
	case u.Scheme == "unix" && (u.Host != "" || u.Query().Has("addr") || u.Query().Has("master_name") || u.Query().Has("cluster")):
		return nil, errors.New("URL: want unix:///path/to/redis.sock, as a socket is one server of this machine")
	case u.Fragment != "" || strings.Contains(u.Path, "@") && u.Scheme != "unix" || strayAt(u.Query()):
		return nil, errors.New("URL: an @ or # after the host; in a password all but letters, digits and - . _ ~ must be %XX")
	}
	return u, nil
}

// strayAt tells whether there is an @ in the query where none belongs.
func strayAt(query url.Values) bool {
	for name, values := range query {
		if name != "username" && name != "password" && strings.Contains(name+strings.Join(values, ""), "@") {
			return true
		}
	}
	return false
}

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
	o.DisableRoutingPolicies = true // all is routed by key; they cost the right to COMMAND, and its answer
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return newCluster(o), nil
}

var errReplicas = errors.New("URL: replicas may lag behind: the options that read from them are not for hotparam")

func orDialTimeout(d time.Duration) time.Duration {
	if d == 0 {
		return dialTimeout
	}
	return d
}
