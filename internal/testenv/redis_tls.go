package testenv

import (
	"os"
	"os/exec"
	"testing"
)

// RedisTLS starts a Redis that talks nothing but TLS, and only to clients that
// show a certificate of the same authority. It is a redis-server of the PATH.
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

// redisProgram is the redis-server that the sets of several servers and what needs
// files run: in containers they would tell clients addresses of their own.
func redisProgram(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil || os.Getenv("HOTPARAM_TEST_REDIS") == "docker" {
		unavailable(tb, "TLS, Sentinel and Cluster need redis-server in PATH, and HOTPARAM_TEST_REDIS not docker: install it (Debian: apt-get install redis-server)")
	}
	return path
}
