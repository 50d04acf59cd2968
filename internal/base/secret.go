package base

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrTwoSecrets says that a secret is in two places.
var ErrTwoSecrets = errors.New("from a file and from the environment: want one")

// ReadSecret reads a secret from where a configuration says that it is: it returns what a file, or a variable of the environment, holds, without the ends of
// lines behind it; "" if neither is named. One that is missing or empty is an error, which
// never holds the secret itself.
func ReadSecret(file, env string) (string, error) {
	switch {
	case file != "" && env != "":
		return "", ErrTwoSecrets
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		secret := strings.TrimRight(string(text), "\r\n")
		if secret == "" {
			return "", fmt.Errorf("%s is empty", file)
		}
		return secret, nil
	case env != "":
		secret := strings.TrimRight(os.Getenv(env), "\r\n")
		if secret == "" {
			return "", fmt.Errorf("the environment has no %s, or it is empty", env)
		}
		return secret, nil
	}
	return "", nil
}
