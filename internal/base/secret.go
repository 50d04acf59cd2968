package base

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrTwoSecrets means that a secret is in two places.
var ErrTwoSecrets = errors.New("from a file and from the environment: want one")

// ReadSecret reads a secret from a file or from an environment variable, and removes line ends
// after it. It returns "" if neither is named. A secret that is missing or empty is an error,
// whose text never contains the secret.
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
