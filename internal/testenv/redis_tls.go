package testenv

import (
	"os/exec"
	"testing"
)

// RedisTLS starts a Redis that accepts only TLS, and only clients with a certificate of the same
// authority. It uses the redis-server of the PATH.
func RedisTLS(tb testing.TB, files CertificateFiles) *RedisServer {
	tb.Helper()
	return localRedis(tb, redisProgram(tb), redisSetup{
		arguments: []string{
			"--tls-ca-cert-file", files.CA, "--tls-cert-file", files.ServerCert, "--tls-key-file", files.ServerKey,
			"--tls-auth-clients", "yes",
		},
		tls: files.Config(tb),
	})
}

// redisProgram returns the path of the redis-server in PATH. Without one the test is skipped.
func redisProgram(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		Unavailable(tb, "no redis-server in PATH: install it (Debian: apt-get install redis-server)")
	}
	return path
}
